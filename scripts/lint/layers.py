"""Checks includes against src/layers.txt: they point only downwards and form no cycle.

A layer is a folder of src/ and of include/simplenet/, with its subfolders, except those that are layers of
their own. An umbrella header, include/simplenet/LAYER.hpp, belongs to its layer and includes each of its public
headers. An umbrella without the name of a layer is above all layers. Headers in a folder detail/ are for the
compiler, not for users.
"""

import fnmatch
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
# Names without definitions, which every layer may include.
NAMES_ONLY = "fwd"


class Layer:
    def __init__(self, may_include, what):
        names = may_include.split()
        self.sources_may = {name.strip("()") for name in names if name.startswith("(")}
        self.may = {name for name in names if not name.startswith("(")}
        self.what = what
        self.text = may_include


class Table:
    """src/layers.txt."""

    def __init__(self, text):
        self.layers = {}  # name: Layer, from low to high
        self.fenced = {}  # pattern of a header in <>: pattern of the files that may include it
        self.complaints = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split("|")]
            if len(parts) != 3:
                self.complaints.append(f"src/layers.txt:{number}: not `name | may include | what it is`")
            elif parts[0].startswith("<"):
                self.fenced[parts[0].strip("<>")] = parts[1]
            else:
                layer = Layer(*parts[1:])
                for name in sorted(layer.may - self.layers.keys()):
                    self.complaints.append(f"src/layers.txt:{number}: {name} is not below {parts[0]}")
                self.layers[parts[0]] = layer
        for name, layer in self.layers.items():
            for other in sorted(layer.sources_may - self.layers.keys()):
                self.complaints.append(f"src/layers.txt: {name}: there is no layer {other}")


def read_table(root):
    return Table((root / "src" / "layers.txt").read_text())


class Includes:
    """The includes of one file, each with its target."""

    def __init__(self, root, table, file):
        self.root = root
        self.table = table
        self.file = file
        self.place = file.relative_to(root).as_posix()
        self.public = self.place.startswith("include/")
        self.layer = self.layer_of(file)
        self.headers = set()  # of this tree
        self.complaints = []

    def layer_of(self, file):
        """The layer's name, whether or not it is in the table; None if the file is above all layers."""
        for tree in ("include/simplenet", "src"):
            if file.is_relative_to(self.root / tree):
                inside = file.relative_to(self.root / tree)
                if len(inside.parts) > 1:
                    nested = "/".join(inside.parts[:2])
                    return nested if nested in self.table.layers else inside.parts[0]
                return inside.stem if tree != "src" and inside.stem in self.table.layers else None
        return None

    def find(self, sign, name):
        """The header of this tree that `name` refers to; None for a system header."""
        beside = (self.file.parent / name).resolve()
        if sign == '"' and beside.is_file() and beside.is_relative_to(self.root):
            return beside
        if name.startswith("simplenet/"):
            return self.root / "include" / name
        if name.endswith(".hpp") and name.split("/")[0] in self.table.layers:
            return self.root / "src" / name
        return None

    def check_umbrella(self):
        """Checks that an umbrella of one layer includes each header of the layer that users may include."""
        if not self.public or self.file.parent != self.root / "include/simplenet" or self.layer is None:
            return
        wanted = set((self.root / "include/simplenet" / self.layer).glob("*.hpp"))
        for header in sorted(wanted - self.headers):
            self.complain(f"does not include {header.name}")

    def complain(self, what):
        self.complaints.append(f"{self.place}: {what}")

    def check(self):
        if self.layer is not None and self.layer not in self.table.layers:
            self.complain(f"the layer {self.layer} is not in src/layers.txt")
            return
        if self.layer is None and not self.public:
            self.complain("belongs to no layer")
        for sign, name in INCLUDE.findall(self.file.read_text()):
            header = self.find(sign, name)
            if header:
                self.headers.add(header)
                self.check_own(name, header)
            for pattern, place in self.table.fenced.items():
                if fnmatch.fnmatchcase(name, pattern) and not fnmatch.fnmatchcase(self.place, place):
                    self.complain(f"only {place} includes <{name}>")
        self.check_umbrella()

    def check_own(self, name, header):
        target = self.layer_of(header)
        if self.public and header.is_relative_to(self.root / "src"):
            self.complain(f"a public header includes {name}, which is private")
        elif self.layer is None or target == self.layer:
            return
        elif target is None:
            if header.stem != NAMES_ONLY:
                self.complain(f"{self.layer} includes {name}, which is above all layers")
        elif target not in self.table.layers:
            self.complain(f"{name}: the layer {target} is not in src/layers.txt")
        else:
            layer = self.table.layers[self.layer]
            if target not in (layer.may if self.public else layer.may | layer.sources_may):
                self.complain(f"{self.layer} must not include {target} ({name})")


def circles(graph):
    """Each cycle of a graph {node: nodes} that a depth-first walk finds, as a list of its nodes."""
    found, done, path = [], set(), []

    def walk(node):
        if node in path:
            found.append(path[path.index(node):] + [node])
        elif node not in done:
            path.append(node)
            for following in sorted(graph.get(node, ())):
                walk(following)
            path.pop()
            done.add(node)

    for node in sorted(graph):
        walk(node)
    return found


def check(root):
    root = root.resolve()
    table = read_table(root)
    complaints = table.complaints
    for name in table.layers:
        if not any((root / tree / name).is_dir() for tree in ("include/simplenet", "src")):
            complaints.append(f"src/layers.txt: {name} has no folder")
    files = sorted(file for tree in ("include/simplenet", "src") for pattern in ("*.hpp", "*.cpp")
                   for file in (root / tree).rglob(pattern))
    graph = {}
    for file in files:
        includes = Includes(root, table, file)
        includes.check()
        complaints += includes.complaints
        graph[file] = includes.headers
    for circle in circles(graph):
        names = (each.relative_to(root).as_posix() for each in circle)
        complaints.append(f"a cycle of includes: {' -> '.join(names)}")
    return complaints, f"{len(files)} files in {len(table.layers)} layers"
