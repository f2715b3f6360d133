"""The tables of the results pages, made from the files beside them.

    PYTHONPATH=. python -m benchmarks.result_tables          # which pages are out of date?
    PYTHONPATH=. python -m benchmarks.result_tables --write  # bring them up to date

A page says in a comment which query makes a table, and the table follows:

    <!-- table
    select run_seed as seed, columns('accuracy.*') from accuracies('icl-medium/metrics.parquet')
    -->
    | seed | accuracy: trained on |
    ...
    <!-- end -->

The names of the result's columns are the table's heading. Paths are relative to the page.
"""

import argparse
import re
from pathlib import Path

import duckdb

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"
_TABLE = re.compile(r"(<!-- table\n(.*?)\n-->\n).*?(<!-- end -->)", re.DOTALL)
_MACROS = """
create macro two(x) as printf('%.2f', x);
create macro small(x) as case when abs(x) >= 0.001 or x = 0 then printf('%#.2g', x)
    else printf('%.1e', x) end;
create macro thousands(x) as format('{:,}', x);
create macro pick(x, key, wanted) as max(x) filter (key = wanted);
-- What a run tracked while it trained; rows with more samples are of its final evaluation.
create macro curve(file) as table select * from read_parquet(file) where num_samples <= 16;
create macro accuracies(file) as table select run_id, run_seed, step,
    two(pick(accuracy_final, split, 'id_train')) as "accuracy: trained on",
    two(pick(accuracy_final, split, 'id_val')) as "accuracy: unseen inputs",
    two(pick(accuracy_final, split, 'ood_train')) as "accuracy: unseen tasks",
    two(pick(accuracy_final, split, 'ood_val')) as "accuracy: both unseen"
    from curve(file) where posterior = 'point' group by all;
create macro epistemic(file, named) as table select run_id, run_seed, step,
    small(pick(epistemic_final, split, 'id_train')) as "EU: trained on",
    small(pick(epistemic_final, split, 'id_val')) as "EU: unseen inputs",
    small(pick(epistemic_final, split, 'ood_train')) as "EU: unseen tasks",
    small(pick(epistemic_final, split, 'ood_val')) as "EU: both unseen"
    from curve(file) where posterior = named group by all;
"""


def updated(text: str, folder: Path) -> str:
    """The page with all its tables made anew."""
    return _TABLE.sub(lambda found: f"{found[1]}{table_of(found[2], folder)}{found[3]}", text)


def table_of(query: str, folder: Path) -> str:
    """The result of a query as a Markdown table."""
    with duckdb.connect() as connection:
        connection.execute(f"set file_search_path = '{folder}'")
        connection.execute(_MACROS)
        result = connection.execute(query)
        lines = [[column[0] for column in result.description], *result.fetchall()]
    if len(lines) == 1:
        raise ValueError(f"no rows: {query}")
    heading, *rows = ([_cell(value) for value in line] for line in lines)
    ruled = [heading, ["---"] * len(heading), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in ruled)


def _cell(value: object) -> str:
    if isinstance(value, float):
        raise ValueError(f"say how {value!r} is written: two(x), small(x) or printf")
    return "" if value is None else str(value).replace("|", "\\|")


def pages() -> list[Path]:
    """All results pages that have such tables."""
    return [page for page in sorted(FOLDER.rglob("*.md")) if _TABLE.search(page.read_text())]


def main() -> None:
    """Compare the pages with their data, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    for page in pages():
        text = page.read_text()
        new = updated(text, page.parent)
        if new != text:
            print(f"{page.relative_to(FOLDER)}: {'written' if write else 'differs from its data'}")
            if write:
                page.write_text(new)


if __name__ == "__main__":
    main()
