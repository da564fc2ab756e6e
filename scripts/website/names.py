"""The names that the reference documents, from the tag file of a first run of Doxygen over the headers."""

import re
import xml.etree.ElementTree

SPELLED = re.compile(r"(?:simplenet::)?(?P<name>\w+(?:::~?\w+)*)(?:<[^()]*>)?(?:\([^()]*\))?")
ROOT = "simplenet::"


class Names:
    def __init__(self, kinds=()):
        self.kinds = {name: kind for name, kind in dict(kinds).items() if name.startswith(ROOT)}

    @classmethod
    def of(cls, tag_file):
        kinds = {}
        for compound in xml.etree.ElementTree.parse(tag_file).getroot():
            kind, scope = compound.get("kind"), compound.findtext("name")
            if kind not in ("class", "struct", "concept", "namespace"):
                continue
            kinds[scope] = kind
            for member in compound.findall("member"):
                name = f"{scope}::{member.findtext('name')}"
                kinds.setdefault(name, "member")
                kinds |= {f"{name}::{value.text}": "member" for value in member.findall("enumvalue")}
        return cls(kinds)

    def meant_by(self, code):
        """The qualified name that `code` in a page means, such as `task<>`, `run()`, `event_loop::stop`; or None."""
        match = SPELLED.fullmatch(code)
        name = match and ROOT + match["name"]
        return name if name in self.kinds else None

    def class_of(self, code):
        """The class or concept that `code` names, or whose member it names; or None."""
        name = self.meant_by(code)
        while name and self.kinds.get(name) not in ("class", "struct", "concept"):
            name = name.rpartition("::")[0]
        return name or None
