"""Checks socket payloads with the validator that the Python SDK runs on every push.

Reads lines of JSON, [event, payload], and prints one line with everything the validator objects to.
"""

import json
import sys

import band_sdk_core

rejected = []
seen = set()
for line in sys.stdin:
    event, payload = json.loads(line)
    seen.add(event)
    try:
        band_sdk_core.validate_event_payload(event, payload, None)
    except ValueError as error:
        rejected.append([event, str(error), payload])
print(json.dumps({"event": "checked", "seen": sorted(seen), "rejected": rejected}))
