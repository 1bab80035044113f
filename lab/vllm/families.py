"""Prints the metric families that the source in wheels of vLLM defines, as TSV: version, family,
type, labels, file, help. It reads the source and runs none of it: neither vLLM nor torch is needed.

    pip download --no-deps -d wheels vllm==0.33.0
    python3 lab/vllm/families.py wheels/*.whl

A family is written as on the wire, so a counter ends in "_total". One that two places define has two
lines. What is known only when vLLM runs is named on stderr; in the labels it is a "?".
"""

import ast
import itertools
import re
import sys
import zipfile

KIND = re.compile(r"(counter|gauge|histogram|summary)(_cls|metadata)?$", re.IGNORECASE)
NAME = re.compile(r"vllm:[a-z]\w*[a-z0-9]$")
# The labels of an engine: what "labelnames" holds where a caller passes it in. V0 had no number.
ENGINE = ("model_name", "engine")
V0 = "vllm/engine/metrics.py"
MAKERS = re.compile(r"_(counter|gauge|histogram|summary)_cls|prometheus_client|[\"']vllm:[a-z]|(Counter|Gauge|Histogram)Metadata")


class Scope:
    """What the names of a module, class or function are bound to. A binding is a function that
    returns the possible values: strings, and tuples of strings."""

    def __init__(self, outer=None):
        self.outer, self.names = outer, {}

    def bind(self, target, get):
        if isinstance(target, ast.Tuple):
            for i, part in enumerate(target.elts):
                self.bind(part, lambda i=i: [v[i] for v in get() if isinstance(v, tuple) and i < len(v)])
        elif isinstance(target, ast.Attribute) and self.outer:
            self.outer.names.setdefault(target.attr, []).append(get)
        elif isinstance(target, ast.Name):
            self.names.setdefault(target.id, []).append(get)

    def find(self, name):
        scope = self
        while scope and name not in scope.names:
            scope = scope.outer
        return scope.names[name] if scope else []


class Source:
    """One wheel: its modules, and the calls that can define a family."""

    def __init__(self, wheel):
        self.classes, self.constants, self.calls, self.strings, self.busy = {}, {}, [], {}, set()
        # The benchmarks are clients: what they name they read from a server.
        for path in sorted(n for n in wheel.namelist() if n.endswith(".py") and not n.startswith("vllm/benchmarks/")):
            text = wheel.read(path).decode()
            if MAKERS.search(text):
                module, tree = Scope(), ast.parse(text)
                module.path, module.imports = path, {}
                self.read(tree, module, module)
                for name, values in module.names.items():
                    self.constants.setdefault(name, values)

    def read(self, node, scope, module):
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.ListComp, ast.DictComp)):
                inner = Scope(scope)
            if isinstance(child, ast.ClassDef):
                self.classes.setdefault(child.name, inner)
            elif isinstance(child, ast.ImportFrom) and child.module == "prometheus_client":
                module.imports.update({a.asname or a.name: a.name for a in child.names})
            elif isinstance(child, (ast.Assign, ast.AnnAssign)) and child.value:
                for target in getattr(child, "targets", None) or [child.target]:
                    scope.bind(target, lambda v=child.value: self.values(v, scope))
                    if isinstance(target, ast.Subscript):
                        self.calls.append((child.value, target.slice, scope, module))
            elif isinstance(child, ast.Dict):
                self.calls += [(v, k, scope, module) for k, v in zip(child.keys, child.values) if k]
            elif isinstance(child, ast.Call):
                self.calls.append((child, None, scope, module))
            elif isinstance(child, ast.Constant) and isinstance(child.value, str) and NAME.match(child.value):
                self.strings.setdefault(child.value, f"{module.path}:{child.lineno}")
            for loop in [child] if isinstance(child, ast.For) else getattr(child, "generators", []):
                inner.bind(loop.target, lambda i=loop.iter, s=inner: [x for v in self.values(i, s) if isinstance(v, tuple) for x in v])
            self.read(child, inner, module)

    def values(self, node, scope):
        """The values that an expression can have, as far as the source says."""
        if id(node) in self.busy:
            return []
        self.busy.add(id(node))
        try:
            return list(dict.fromkeys(self.evaluate(node, scope)))
        finally:
            self.busy.discard(id(node))

    def evaluate(self, node, scope):
        match node:
            case ast.Constant(value=str()):
                return [node.value]
            case ast.List() | ast.Tuple() | ast.Set():
                parts = [self.values(part, scope) for part in node.elts]
                return [tuple(p[0] if p else "?" for p in parts)]
            case ast.JoinedStr():
                parts = [self.values(part.value if isinstance(part, ast.FormattedValue) else part, scope) for part in node.values]
                return ["".join(found) for found in itertools.product(*parts) if all(isinstance(f, str) for f in found)]
            case ast.BinOp(op=ast.Add()):
                return [a + b for a in self.values(node.left, scope) for b in self.values(node.right, scope) if type(a) is type(b)]
            case ast.IfExp():
                return self.values(node.body, scope) + self.values(node.orelse, scope)
            case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
                return self.values(inner, scope)
            case ast.Name():
                found = scope.find(node.id) or self.constants.get(node.id, [])
            case ast.Attribute(value=ast.Name(id=owner)):
                found = self.classes[owner].names.get(node.attr, []) if owner in self.classes else scope.find(node.attr)
            case _:
                return []
        if not found and ast.unparse(node) in ("labelnames", "self._labelnames"):
            return [self.engine]
        return [v for get in found for v in get()]

    def kind(self, call, module):
        """The type of a family that a call defines; None for another call."""
        name = ast.unparse(call.func)
        last = name.split(".")[-1]
        known = last.endswith(("_cls", "Metadata")) or name in module.imports or name.startswith("prometheus_client.")
        found = KIND.search(module.imports.get(name, last)) if known else None
        return found and found.group(1).lower()

    def families(self):
        """Yields type, family, labels, file and help, and tells stderr what it cannot resolve."""
        seen = set()
        for call, key, scope, module in self.calls:
            kind = self.kind(call, module) if isinstance(call, ast.Call) else None
            table = kind and ast.unparse(call.func).endswith("Metadata")
            if not kind or table != (key is not None):
                continue
            given = dict(zip(("name", "documentation", "labelnames"), call.args)) | {k.arg: k.value for k in call.keywords}
            name = key if table else given.get("name")
            names = [n for n in self.values(name, scope) if n != "?"] if name else []
            if not names:
                complain(f"{module.path}:{call.lineno}: the name of a {kind}: {ast.unparse(name or call)}")
            self.engine = ENGINE[:1] if module.path == V0 else ENGINE
            labels = set(self.engine) if table else set()
            if "labelnames" in given:
                labels.update(*self.values(given["labelnames"], scope) or ["?"])
            helps = self.values(given["documentation"], scope) if "documentation" in given else []
            for i, family in enumerate(names):
                seen.add(family)
                if kind == "counter":
                    family = family.removesuffix("_total") + "_total"
                words = helps[i if len(helps) == len(names) else 0] if helps else ""
                yield family, kind, ",".join(sorted(labels)), module.path, " ".join(words.split())
        for name in self.strings.keys() - seen:
            complain(f"{self.strings[name]}: a name that defines no family: {name}")


def complain(what):
    print("unresolved:", what, file=sys.stderr)


def main(paths):
    for path in paths:
        with zipfile.ZipFile(path) as wheel:
            about = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            version = re.search(r"^Version: ([\w.]+)", wheel.read(about).decode(), re.MULTILINE).group(1)
            print(f"# {path.split('/')[-1]}", file=sys.stderr)
            for row in sorted(set(Source(wheel).families())):
                print(version, *row, sep="\t")


main(sys.argv[1:])
