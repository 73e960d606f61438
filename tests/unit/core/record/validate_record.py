"""Checks records against the JSON Schema: validate_record.py SCHEMA RECORD...

Prints one line a record. Exit code 0 when all are valid, 1 when one is not, 2 when the schema
itself is broken.
"""

import json
import sys

import jsonschema


def refuse(token):
    """Python reads NaN and Infinity, which are no JSON."""
    raise ValueError(f"{token} is not JSON")


def main(schema_path, *record_paths):
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    try:
        jsonschema.Draft7Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        print(f"{schema_path}: {error.message}")
        return 2
    validator = jsonschema.Draft7Validator(schema)
    broken = False
    for path in record_paths:
        try:
            with open(path, encoding="utf-8") as file:
                error = jsonschema.exceptions.best_match(
                    validator.iter_errors(json.load(file, parse_constant=refuse)))
        except ValueError as failure:
            print(f"{path}: {failure}")
            broken = True
            continue
        if error is None:
            print(f"{path}: valid")
        else:
            place = "/".join(str(part) for part in error.absolute_path) or "(top)"
            print(f"{path}: {place}: {error.message}")
            broken = True
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
