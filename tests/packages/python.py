"""The wheel and the sdist."""

from dist import SAID, bring, example, installed, says, times, with_url


def wheel(root, url):
    place, inside = root.fresh("wheel")
    bring(place, f"stanchion-*manylinux*_{root.cpu}.whl")
    (place / "example.py").write_text(with_url(example("bindings-python", "python"), url))
    took = installed(root, "python3 -m venv venv && venv/bin/pip install --no-index --quiet ./*.whl", inside)
    ran = says(root, "venv/bin/python example.py", inside)
    says(root, f"venv/bin/stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside)
    return times(took, ran)


CASES = {"wheel": wheel}
ONCE = {}
