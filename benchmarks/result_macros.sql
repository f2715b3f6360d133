-- What the queries of the pages share. The folder of the results pages takes the place of 'RESULTS'.
create macro logged(pattern) as (select regexp_extract(content, pattern, 1) from log);
create macro two(x) as printf('%.2f', x);
create macro small(x) as case when abs(x) >= 0.001 or x = 0 then printf('%#.2g', x)
    else printf('%.1e', x) end;
create macro thousands(x) as format('{:,}', x);
create macro constant(wanted) as (select any_value(value) from constants where name = wanted);
create macro pick(x, key, wanted) as max(x) filter (key = wanted);
-- What a run tracked while it trained; rows with more samples are of its final evaluation.
create macro curve(file) as table select * from read_parquet(file) where num_samples <= 16;
create macro accuracies(file) as table select run_id, run_seed, step,
    two(pick(accuracy_final, split, 'id_train')) as "accuracy: trained on",
    two(pick(accuracy_final, split, 'id_val')) as "accuracy: unseen inputs",
    two(pick(accuracy_final, split, 'ood_train')) as "accuracy: unseen tasks",
    two(pick(accuracy_final, split, 'ood_val')) as "accuracy: both unseen"
    from curve(file) where posterior = 'point' group by all;
-- The runs that answered unseen inputs at the end, and when EU collapsed.
create macro runs_that_grok_under_any() as table select *, peak_step is not null as has_peak,
    case when collapsed_step is null then 'never' when collapsed_step < generalised_step then 'before'
        when collapsed_step = generalised_step then 'with it' else 'after' end as collapse
    from times where generalised_step is not null;
-- The same under IVON's posterior and under the paper's prior.
create macro runs_that_grok() as table
    select * from runs_that_grok_under_any() where posterior in ('laplace', 'ivon');
-- What the steps of the paper's grids would take on an H200, at measured speeds.
create macro cost_of_grids() as table
with speeds as (select name, regexp_extract(content, kind || ': ([\d.]+)', 1)::double as speed
    from read_text('RESULTS/kernels-h200.txt'), (values ('paper', 'icl-paper adamw'),
        ('paper-medium', 'icl-medium muon'), ('paper-small', 'icl-small muon')) as kinds(name, kind))
select name, num_runs, printf('%.1f', num_steps / 1e6) as millions, printf('%.1f', speed) as speed,
    num_steps / 3600 / speed as hours from sweeps join speeds using (name);
-- Seconds of a run with all its evaluations, as logged, and hours of 120 runs of each kind.
create macro medium_seconds() as logged('(\d+) s in all, of which')::int // 3;
create macro medium_ivon_seconds() as logged('side by side, about (\d+) s of the GPU')::int;
create macro medium_hours() as printf('%.0f', 120 * (medium_seconds() + medium_ivon_seconds()) / 3600);
create macro epistemic(file, named) as table select run_id, run_seed, step,
    small(pick(epistemic_final, split, 'id_train')) as "EU: trained on",
    small(pick(epistemic_final, split, 'id_val')) as "EU: unseen inputs",
    small(pick(epistemic_final, split, 'ood_train')) as "EU: unseen tasks",
    small(pick(epistemic_final, split, 'ood_val')) as "EU: both unseen"
    from curve(file) where posterior = named group by all;
-- Counts and lags of the detection benchmark, as one reads them.
create macro detected(kinds_of) as table select who, missed || ' of ' || generalised as "missed",
    "loss missed" || ' of ' || lost as "losses missed",
    "false alarms" || ' of ' || "not generalised" as "false alarms",
    two("median lag in steps") || ' / ' || two("worst lag in steps") as "lag in steps, median / worst"
    from 'RESULTS/detection/rule.csv' where kinds = kinds_of;
