//! Names of methods, filters and tests.

use super::value::{SequenceKind, Value};

const OF_TEXTS: &str = "capitalize casefold center count endswith expandtabs find format format_map index isalnum \
    isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle \
    isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust \
    rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill encode";
const OF_LISTS: &str = "count index";
const OF_DICTS: &str = "copy get items keys values";
const CHANGING_LISTS: &str = "append clear extend insert pop remove reverse sort";
const CHANGING_DICTS: &str = "clear pop popitem setdefault update";

/// Whether a value has a method of a name.
pub(super) fn has(value: &Value, name: &str) -> bool {
    let is_in = |names: &str| lists(names, name);
    match value {
        Value::Text(_) => is_in(OF_TEXTS),
        Value::List(list) if list.kind == SequenceKind::List => {
            name == "copy" || is_in(OF_LISTS) || changes(value, name)
        }
        Value::List(list) if !matches!(list.kind, SequenceKind::View(_)) => is_in(OF_LISTS),
        Value::Dict(_) => is_in(OF_DICTS) || changes(value, name),
        Value::Range(_) => is_in(OF_LISTS),
        Value::Float(_) => name == "is_integer",
        _ => false,
    }
}

/// Whether a method changes what it belongs to, which templates may not.
pub(super) fn changes(value: &Value, name: &str) -> bool {
    let names = if let Value::Dict(_) = value { CHANGING_DICTS } else { CHANGING_LISTS };
    lists(names, name)
}

/// Filters on one value.
const FILTERS: &str = "abs attr capitalize center count d default e escape float forceescape format indent int \
    length lower pprint replace round safe string title tojson trim truncate upper wordcount";
/// Filters that go through the items of a value.
const LIST_FILTERS: &str = "batch dictsort first groupby items join last list map max min random reject rejectattr \
    reverse select selectattr slice sort sum unique";
const TESTS: &str = "== eq equalto != ne < lt lessthan <= le > gt greaterthan >= ge in sameas divisibleby defined \
    undefined none boolean true false integer float number string mapping sequence iterable \
    callable escaped odd even lower upper filter test";

fn lists(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

pub(super) fn is_list_filter(name: &str) -> bool {
    lists(LIST_FILTERS, name)
}

pub(super) fn is_filter(name: &str) -> bool {
    lists(FILTERS, name) || is_list_filter(name)
}

pub(super) fn is_test(name: &str) -> bool {
    lists(TESTS, name)
}
