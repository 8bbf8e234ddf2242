//! Templates that were made to do harm: each is refused or has a text, within its budget and its stack.

use super::VOCABULARY;
use kernmill_chat::{Conversation, Item, Template};
use kernmill_os::foreign::Cancel;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Text of a template, or its failure, on a small stack.
fn run(source: &str) -> Result<String, String> {
    thread::scope(|scope| {
        let run = || {
            let item = Item::User { name: None, text: "Hello".to_owned() };
            let conversation = Conversation { items: vec![item], ..Conversation::default() };
            let template =
                Template::new(source, &*VOCABULARY, &BTreeMap::new()).map_err(|error| error.to_string())?;
            template.text(&conversation).map_err(|error| error.to_string())
        };
        // That of threads, in a build that is not optimised: released programs need a fraction.
        let thread = thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, run);
        thread.unwrap().join().unwrap()
    })
}

/// Holds a template to one line of reason.
fn fails(source: &str, reason: &str) {
    let shown: String = source.chars().take(200).collect();
    let error = run(source).map_err(Some).expect_err(&shown).unwrap();
    assert!(error.contains(reason) && !error.contains('\n'), "{shown}: {error}");
}

/// Values that grow in a loop, with what is done with them behind it.
fn grown(first: &str, next: &str, times: usize, end: &str) -> String {
    format!(
        "{{% set n = namespace(x={first}, y={first}) %}}{{% for i in range({times}) %}}{{% set n.x = {next} \
         %}}{{% set n.y = n.x %}}{{% endfor %}}{end}"
    )
}

#[test]
fn chains_of_every_operator_have_a_value() {
    let chains = [
        ("{{ ", "-", "1 }}"),
        ("{{ ", "not ", "1 }}"),
        ("{{ 1", "+1", " }}"),
        ("{{ 1", "*1", " }}"),
        ("{{ 1", "//1", " }}"),
        ("{{ 1", "**1", " }}"),
        ("{{ 1", " and 1", " }}"),
        ("{{ 1", " or 1", " }}"),
        ("{{ 1", "<=1", " }}"),
        ("{{ 1", " == 1", " }}"),
        ("{{ 1", "~1", " }}"),
        ("{{ 1", "|abs", " }}"),
        ("{{ 1", " is defined", " }}"),
        ("{{ 'a'", ".upper()", " }}"),
        ("{{ 'a'", "[0]", " }}"),
        ("{{ 'a'", "[:]", " }}"),
        ("{{ 'a' ", "'a' ", " }}"),
        ("{% if 0 %}", "{% elif 0 %}", "{% endif %}"),
        ("", "{% set x = 1 %}", "a"),
        ("", "{# a #}", "a"),
        ("", "{{ 1 }}", ""),
        ("{{ [", "1,", "] | length }}"),
        ("{{ {", "1:1,", "} }}"),
        ("{{ dict(", "a=1,", ") }}"),
    ];
    for (start, unit, end) in chains {
        let source = format!("{start}{}{end}", unit.repeat(20_000));
        if let Err(error) = run(&source) {
            assert!(
                ["more than a template may", "twice"].iter().any(|what| error.contains(what)),
                "{unit}: {error}"
            );
        }
    }
    fails(&format!("{{{{ a{} }}}}", ".a".repeat(20_000)), "undefined");
}

#[test]
fn nesting_has_a_limit() {
    let nested = [
        ("{{ ", "(", "1", ")", " }}"),
        ("{{ ", "[", "1", "]", " }}"),
        ("{{ ", "{1:", "1", "}", " }}"),
        ("{{ ", "f(", "1", ")", " }}"),
        ("{{ ", "x[", "1", "]", " }}"),
        ("{{ ", "-(", "1", ")", " }}"),
        ("{{ ", "1 if 1 else ", "1", "", " }}"),
        ("{{ 1", "|f(1", "", ")", " }}"),
        ("{{ 1", " is f(1", "", ")", " }}"),
        ("", "{% if 1 %}", "", "{% endif %}", ""),
        ("", "{% for x in [1] %}", "", "{% endfor %}", ""),
        ("", "{% macro f() %}", "", "{% endmacro %}", ""),
        ("", "{% set x %}", "", "{% endset %}", ""),
        ("", "{% filter upper %}", "", "{% endfilter %}", ""),
        ("", "{% with %}", "", "{% endwith %}", ""),
        ("", "{% call f() %}", "", "{% endcall %}", ""),
        ("{% set ", "(", "x", ")", " = 1 %}"),
    ];
    for (start, open, inner, close, end) in nested {
        let deep = |n: usize| format!("{start}{}{inner}{}{end}", open.repeat(n), close.repeat(n));
        fails(&deep(10_000), "nest deeper than 64");
        // Real templates are far below the limit.
        if let Err(error) = run(&deep(30)) {
            assert!(!error.contains("nest"), "{open}: {error}");
        }
    }
}

#[test]
fn macros_and_loops_in_themselves_have_a_limit() {
    let sources = [
        "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
        "{% macro m(x) %}{% if 1 %}{% for i in [1] %}{{ [(m(x) ~ 1)] }}{% endfor %}{% endif %}{% endmacro %}{{ m(1) }}",
        "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
        "{% macro m() %}{% filter upper %}{% set x %}{{ m() }}{% endset %}{% endfilter %}{% endmacro %}{{ m() }}",
        "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
    ];
    for source in sources {
        fails(source, "nest too deeply");
    }
}

#[test]
fn templates_end_with_their_caller_and_at_their_limit() {
    // The work that a template may do grows with the conversation; what it is asked before is small.
    let heavy = "{% if messages|length > 99 %}{% for i in range(99999) %}{% for j in range(99999) %}\
                 {% endfor %}{% endfor %}{% endif %}";
    let template = Template::new(heavy, &*VOCABULARY, &BTreeMap::new()).unwrap();
    let item = Item::User { name: None, text: "a".to_owned() };
    let conversation = Conversation { items: vec![item; 100_000], ..Conversation::default() };
    let text = || template.text(&conversation).unwrap_err().to_string();
    let start = Instant::now();
    let error = text();
    assert!(error.contains("takes longer than a template may"), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(2));
    let cancel = Cancel::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            cancel.cancel();
        });
        let error = cancel.around(text);
        assert!(error.contains("nobody waits for it any more"), "{error}");
    });
}

#[test]
fn values_do_not_nest_without_a_limit() {
    let deep = [
        ("[]", "[n.x]"),
        ("()", "(n.x,)"),
        ("{}", "{'a': n.x}"),
        ("[]", "dict(a=n.x)"),
        ("[]", "[n.x].index"),
        ("[]", "[n.x] | map('list')"),
        ("[]", "[n.x] | reverse"),
        ("[]", "[n.x] | batch(1)"),
        ("[]", "cycler(n.x)"),
        ("{}", "{'a': n.x}.items()"),
        ("[]", "[n.x] | groupby(0)"),
    ];
    for (first, next) in deep {
        for end in ["", "{{ n.x }}", "{{ n.x == n.y }}", "{{ n.x | tojson }}"] {
            if let Err(error) = run(&grown(first, next, 30_000, end)) {
                let reasons =
                    ["values nest deeper", "no items", "no order", "undefined", "more than a template may"];
                assert!(reasons.iter().any(|reason| error.contains(reason)), "{next}: {error}");
            }
        }
    }
    // Namespaces and macros may hold each other, and themselves.
    let chains = [
        "{% set n = namespace() %}{% for i in range(9000) %}{% set n.x = namespace(x=n.x) %}{% endfor %}a",
        "{% set n = namespace() %}{% for i in range(9000) %}{% macro f() %}{{ n }}{% endmacro %}{% set n.x = \
         f %}{% endfor %}a",
        "{% set n = namespace() %}{% set n.x = [n] %}{% for i in [n] %}{{ loop.changed(loop) | string | \
         length * 0 }}{% endfor %}",
    ];
    for source in chains {
        assert!(run(source).is_ok(), "{source}: {:?}", run(source));
    }
}

#[test]
fn trees_that_share_their_branches_are_not_walked_for_ever() {
    for (first, next) in [("[1]", "[n.x, n.x]"), ("(1,)", "(n.x, n.x)"), ("{}", "{'a': n.x, 'b': n.x}")] {
        let ends = [
            "{{ n.x }}",
            "{{ n.x | tojson }}",
            "{{ n.x == n.y }}",
            "{{ n.x in [n.y, 1] }}",
            "{{ n.x ~ 'a' }}",
            "{{ {n.x: 1} }}",
            "{{ {}.get(n.x) }}",
            "{{ [n.x, n.y] | sort }}",
            "{{ [n.x, n.y] | unique | list }}",
            "{{ n.x | string }}",
            "{{ n.x | pprint }}",
            "{{ '%s' % n.x }}",
            "{{ '{}'.format(n.x) }}",
            "{{ [n.x] | groupby(0) }}",
            "{{ n.x < n.y }}",
            "{% for i in [1, 2] %}{{ loop.changed(n.x) }}{% endfor %}",
            "{{ [n.x].index([n.y]) }}",
            "{{ [n.x].count(n.y) }}",
        ];
        // The first ways of looking at a value are those of every kind.
        let count = if first == "[1]" { ends.len() } else { 7 };
        for end in &ends[..count] {
            let source = grown(first, next, 40, "")
                .replace("{% set n.y = n.x %}", &format!("{{% set n.y = {} %}}", next.replace("n.x", "n.y")))
                + end;
            if let Err(error) = run(&source) {
                let reasons = [
                    "more than a template may",
                    "longer than",
                    "no key",
                    "no order",
                    "no attribute",
                    "undefined",
                    "finds no",
                ];
                assert!(reasons.iter().any(|reason| error.contains(reason)), "{end}: {error}");
            }
        }
    }
}

/// Work is counted by the sizes of what operators look at, so that a short template cannot ask for much.
#[test]
fn operators_use_up_the_budget_by_sizes() {
    let long = "{% set x = 'ab ' * 2000000 %}{% for i in range(99999) %}{% set y = ";
    let operands = [
        "x[-1]",
        "x[1]",
        "x is lower",
        "x == x ~ ''",
        "x.startswith('b')",
        "x.find('c')",
        "'c' in x",
        "x.count('c')",
        "x | length",
        "x | upper",
        "x.strip()",
        "x.split('c')",
        "x.replace('c', '')",
        "x[::2]",
        "x < x ~ 'a'",
        "x | wordcount",
        "x | int",
        "x.isalpha()",
        "x ~ ''",
        "{x: 1}",
        "{}[x]",
        "x | truncate(5)",
        "'%s' % x",
        "'{}'.format(x)",
        "x | indent",
        "x | tojson",
        "x.join('ab')",
    ];
    for operand in operands {
        fails(&format!("{long}{operand} %}}{{% endfor %}}"), "than a template may");
    }
    let lists = [
        grown("[1]", "n.x + n.x", 60, ""),
        grown("'a'", "n.x ~ n.x", 60, ""),
        grown("'a'", "n.x * 1000", 60, ""),
        grown("[1]", "n.x * 1000", 60, ""),
        grown("'a'", "([n.x] * 9) | join", 60, ""),
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}".to_owned(),
        "{{ [1] | batch(99999999999, 1) | list }}".to_owned(),
        "{{ [1] | slice(99999999999, 1) | list }}".to_owned(),
        "{{ 'a'.center(99999999999) }}".to_owned(),
        "{{ 'a' | indent(99999999999, true) }}".to_owned(),
        "{{ '7'.zfill(99999999999) }}".to_owned(),
        "{{ ('\\t' * 99999).expandtabs(99999999) }}".to_owned(),
    ];
    for source in lists {
        fails(&source, "than a template may");
    }
    for source in [
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '{:.1000000000f}'.format(1) }}",
        "{{ '{:{}}'.format(1, 2000) }}",
    ] {
        fails(source, "a format has a width of more than 1000");
    }
    fails("{{ range(100001) | list }}", "`range` has more than 100000 numbers");
}
