"""Prints what two explorations of a program must agree on, from the JSON of one.

    python3 findings.py RESULT.json

A program that hangs says where it was when its wall time was over, which no other run repeats.
"""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    result = json.load(file)
del result["forked_branches"]
for finding in result["findings"]:
    if finding["outcome"] == "hangs":
        del finding["happened"], finding["explanation"], finding["time_ps"]
print(json.dumps(result, indent=1))
