"""`scripts/findings-docs`: the codes of docs/findings.md, written anew or checked."""

import argparse
import sys
from pathlib import Path

from moontap.findings.registry import all_checks
from scripts.findings_lib import corpus
from scripts.findings_lib.page import page

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def wanted() -> str:
    """The page as it should be."""
    return page(PAGE.read_text(encoding="utf-8"), all_checks(), corpus.read())


def main() -> int:
    """0; with --check 1 where the page is not current."""
    parser = argparse.ArgumentParser(prog="scripts/findings-docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    options = parser.parse_args()
    text = wanted()
    if text == PAGE.read_text(encoding="utf-8"):
        return 0
    if options.check:
        print("docs/findings.md is out of date; run scripts/findings-docs", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print("docs/findings.md is written anew; what stands before the codes is as it was")
    return 0


if __name__ == "__main__":
    sys.exit(main())
