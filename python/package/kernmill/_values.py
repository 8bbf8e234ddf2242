"""What classes of named values have in common."""

from __future__ import annotations


class Values:
    """Shows all values of an object, and compares them.

    `dataclasses` has more for this, and takes longer to import than all of this package.
    """

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented
