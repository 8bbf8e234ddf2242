//! Conversations are brought to what a template takes, and stay as they are where it takes them.

use super::VOCABULARY;
use kernmill_chat::{Conversation, Template};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn template(source: &str) -> Template {
    Template::new(source, &*VOCABULARY, &BTreeMap::from([("bos_token".to_owned(), "<s>".to_owned())]))
        .unwrap()
}

fn conversation(items: &Value, tools: &Value) -> Conversation {
    serde_json::from_value(json!({"items": items, "tools": tools})).unwrap()
}

fn weather() -> Value {
    let schema = json!({"type": "object", "properties": {"place": {"type": "string"}}});
    json!([{"name": "weather", "description": "The weather.", "parameters": schema}])
}

fn user(text: &str) -> Value {
    json!({"user": {"text": text}})
}

fn call(id: &str, place: &str) -> Value {
    json!({"call": {"id": id, "name": "weather", "arguments": json!({"place": place}).to_string()}})
}

fn output(id: &str, text: &str) -> Value {
    json!({"output": {"id": id, "name": "weather", "text": text}})
}

fn text(source: &str, items: &Value) -> String {
    template(source).text(&conversation(items, &json!([]))).unwrap()
}

/// Roles and contents, after statements that refuse.
fn said(refusals: &str) -> String {
    let shown = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    format!("{refusals}{shown}")
}

const LATER: &str = "{% for m in messages %}{% if m.role == 'system' and not loop.first %}\
    {{ raise_exception('later') }}{% endif %}{% endfor %}";
const ANY: &str = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('system') }}{% endif \
    %}{% endfor %}";
const ALTERNATE: &str = "{% for m in messages | rejectattr('role', 'eq', 'system') %}\
    {% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{% endfor %}";

#[test]
fn instructions_go_where_a_template_takes_them() {
    let items =
        json!([{"instructions": "A."}, user("B"), {"answer": "C"}, {"instructions": "D."}, user("E")]);
    assert_eq!(text(&said(""), &items), "[system]A.[user]B[assistant]C[system]D.[user]E");
    assert_eq!(text(&said(LATER), &items), "[system]A.\n\nD.[user]B[assistant]C[user]E");
    assert_eq!(text(&said(ANY), &items), "[user]A.\n\nD.\n\nB[assistant]C[user]E");
    // Dropped without a word.
    let first = "{% if messages[0].role == 'system' %}[{{ messages[0].content }}]{% endif %}\
                 {% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}";
    assert_eq!(text(first, &items), "[A.\n\nD.]BCE");
    let never = "{% for m in messages if m.role != 'system' %}{{ m.content }};{% endfor %}";
    assert_eq!(text(never, &items), "A.\n\nD.\n\nB;C;E;");
    // A switch in the instructions that the template takes out stays a switch.
    let switch = "{% for m in messages %}{{ m.content.replace('/fast', '') }};{% endfor %}";
    assert_eq!(text(switch, &json!([{"instructions": "/fast"}, user("B")])), ";B;");
}

#[test]
fn neighbours_are_joined_where_roles_alternate() {
    let items = json!([user("A"), user("B"), {"answer": "C"}, {"instructions": "D."}, user("E")]);
    assert_eq!(text(&said(""), &items), "[user]A[user]B[assistant]C[system]D.[user]E");
    assert_eq!(text(&said(ALTERNATE), &items), "[user]A\n\nB[assistant]C[system]D.[user]E");
    let all = format!("{ALTERNATE}{ANY}");
    assert_eq!(text(&said(&all), &items), "[user]D.\n\nA\n\nB[assistant]C[user]E");
    // A conversation that fits no form is refused, with the template's message about the conversation as it
    // is.
    let refused = template(&said("{{ raise_exception('no ' ~ messages | length) }}"));
    let refused = refused.text(&conversation(&items, &json!([]))).unwrap_err().to_string();
    assert_eq!(refused, "the chat template refuses this conversation: no 5");
}

/// Calls and outputs, with the arguments written by an expression.
fn called(arguments: &str) -> String {
    format!(
        "{{% for m in messages %}}[{{{{ m.role }}}}]{{{{ m.content }}}}{{% for call in m.tool_calls or [] %}}\
         <{{{{ call.function.name }}}} {{{{ {arguments} }}}}>{{% endfor %}}{{% endfor %}}"
    )
}

#[test]
fn arguments_are_objects_or_texts() {
    let items =
        json!([user("A"), call("c1", "Oslo"), output("c1", "rain"), call("c2", "Rome"), output("c2", "sun")]);
    let wanted = "[user]A[assistant]<weather {\"place\": \"Oslo\"}>[tool]rain[assistant]<weather {\"place\": \
        \"Rome\"}>[tool]sun";
    let sources = [
        "call.function.arguments | tojson",
        "call.function.arguments",
        "'' + call.function.arguments",
        "call['function']['arguments'] if call.function.arguments is string else call.function.arguments | tojson",
    ];
    for source in sources {
        assert_eq!(text(&called(source), &items), wanted, "{source}");
    }
    // No arguments are an empty object.
    for none in ["", "null", " {} "] {
        let call = json!({"call": {"id": "c1", "name": "weather", "arguments": none}});
        let items = json!([user("A"), call, output("c1", "rain")]);
        for source in ["call.function.arguments | tojson", "'' + call.function.arguments"] {
            assert_eq!(
                text(&called(source), &items),
                "[user]A[assistant]<weather {}>[tool]rain",
                "{source} {none}"
            );
        }
        let walked = "call.function.arguments.items() | list";
        assert_eq!(text(&called(walked), &items), "[user]A[assistant]<weather []>[tool]rain", "{none}");
    }
}

#[test]
fn contents_are_none_where_calls_are_looked_for_there() {
    let source = "{% for m in messages %}[{{ m.role }}]{% if m.content is none %}{% for call in m.tool_calls %}\
        {{ call.function.arguments | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
    let items = json!([user("A"), call("c1", "Oslo"), output("c1", "rain"), {"answer": "B"}]);
    assert_eq!(text(source, &items), "[user]A[assistant]{\"place\": \"Oslo\"}[tool]rain[assistant]B");
}

#[test]
fn calls_come_one_at_a_time_where_a_message_has_one() {
    let source = "{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length != 1 %}\
        {{ raise_exception('one call') }}{% endif %}{{ m.content }}<{{ m.tool_calls[0].function.arguments | tojson }}>\
        {% else %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}";
    let items = json!([user("A"), {"preamble": "B"}, call("c1", "Oslo"), call("c2", "Rome"),
                       output("c2", "sun"), output("c1", "rain"), user("C")]);
    let wanted = "[user]AB<{\"place\": \"Oslo\"}>[tool]rain<{\"place\": \"Rome\"}>[tool]sun[user]C";
    assert_eq!(text(source, &items), wanted);
}

#[test]
fn identifiers_fit_a_template() {
    let source = "{% for m in messages %}{% for call in m.tool_calls or [] %}{% if call.id | length != 9 %}\
        {{ raise_exception('nine') }}{% endif %}<{{ call.id }}{{ call.function.arguments | tojson }}>{% endfor %}\
        {% if m.role == 'tool' %}({{ m.tool_call_id }}){% endif %}{{ m.content }}{% endfor %}";
    let with = |id: &str| {
        let text = text(source, &json!([user("A"), call(id, "Oslo"), output(id, "rain")]));
        let of_call = text.split(['<', '{']).nth(1).unwrap().to_owned();
        assert_eq!(text.split(['(', ')']).nth(1).unwrap(), of_call);
        of_call
    };
    assert_eq!(with("Ab3dE6gH9"), "Ab3dE6gH9");
    let ids = ["call_1", "call_2", "x", "Ab3dE6gH_", "call_0123456789abcdef01234567"].map(with);
    for (n, id) in ids.iter().enumerate() {
        assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
        assert!(!ids[..n].contains(id), "{id} twice");
    }
    assert_eq!(ids[0], with("call_1"));
}

#[test]
fn functions_are_told_where_a_template_has_no_place_for_them() {
    let items = json!([user("A"), call("c1", "Oslo"), output("c1", "rain"), output("c1", "sun"), user("B")]);
    let plain = template(&said(""));
    assert!(!plain.tells_tools());
    assert_eq!(plain.calls().map(|format| format.name), Some("hermes"));
    // Marks of another format go before.
    let marked = template(&said("{# [TOOL_CALLS] #}"));
    let text = marked.text(&conversation(&items, &weather())).unwrap();
    assert_eq!(marked.calls().map(|format| format.name), Some("mistral_list"));
    assert!(text.contains("[assistant][TOOL_CALLS][{\"name\": \"weather\""), "{text}");
    let text = plain.text(&conversation(&items, &weather())).unwrap();
    let function = "{\"name\": \"weather\", \"description\": \"The weather.\", \"parameters\": \
                    {\"type\": \"object\", \"properties\": {\"place\": {\"type\": \"string\"}}}}";
    assert!(text.starts_with("[system]") && text.contains(function), "{text}");
    let turns = "[user]A[assistant]<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"place\": \"Oslo\"}}\n\
        </tool_call>[user]<tool_response>\nrain\n</tool_response>\n<tool_response>\nsun\n</tool_response>[user]B";
    assert!(text.ends_with(turns), "{text}");
    // Instructions stay in front of what is told; where there may be none, the user's message has all.
    let items = json!([{"instructions": "Be brief."}, user("A")]);
    let text = plain.text(&conversation(&items, &weather())).unwrap();
    assert!(text.starts_with("[system]Be brief.\n\nYou may call these functions."), "{text}");
    let text = template(&said(ANY)).text(&conversation(&items, &weather())).unwrap();
    assert!(text.starts_with("[user]Be brief.\n\nYou may") && text.ends_with("\n\nA"), "{text}");
    // Without functions, nothing is told; with a place for them, they are there.
    assert_eq!(plain.text(&conversation(&items, &json!([]))).unwrap(), "[system]Be brief.[user]A");
    let own = template(&said("{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}"));
    assert!(own.tells_tools() && own.calls().is_none());
    assert_eq!(own.text(&conversation(&items, &weather())).unwrap(), "<weather>[system]Be brief.[user]A");
}

/// A template may tell functions in some conversations and not in others.
#[test]
fn functions_are_told_in_every_conversation() {
    let beside = template(&said(
        "{% if messages[0].role == 'system' %}{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}{% endif %}",
    ));
    let system = json!([{"instructions": "Be brief."}, user("A")]);
    assert!(beside.tells_tools());
    assert_eq!(beside.text(&conversation(&system, &weather())).unwrap(), "<weather>[system]Be brief.[user]A");
    let alone = beside.text(&conversation(&json!([user("A")]), &weather())).unwrap();
    assert!(alone.contains("[system]You may call") && alone.contains("\"weather\""), "{alone}");
    // The name alone, of an earlier call, tells the model nothing.
    let last = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}\
        {{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}\
        {% if loop.last and m.role == 'user' and tools %}{{ tools | tojson }}{% endif %}{% endfor %}";
    let items = json!([user("A"), call("c1", "Oslo"), output("c1", "rain")]);
    let text = template(last).text(&conversation(&items, &weather())).unwrap();
    assert!(text.starts_with("[system]You may call") && text.contains("The weather."), "{text}");
    // Where they cannot be told in the instructions either, the conversation is refused.
    let pairs = format!("{}<function=x>\n<parameter=y>", last.replace("[{{ m.role }}]", "<tool_call>"));
    let error = template(&pairs).text(&conversation(&items, &weather())).unwrap_err();
    assert!(error.to_string().contains("it drops the functions that are declared"), "{error}");
}

#[test]
fn calls_are_texts_where_a_template_tells_only_functions() {
    let items = json!([
        user("A"), {"preamble": "I look."}, call("1", "Oslo"), call("2", "It's \"Rome\""), output("1", "rain"),
        output("2", "sun"), user("B")
    ]);
    // In the form of the template's marks, with outputs where it has a place for them.
    let told = "{% if tools %}<|tool_list_start|>{{ tools | tojson }}{% endif %}";
    let lfm = template(&said(told));
    assert!(lfm.tells_tools() && !lfm.tells_calls());
    let text = lfm.text(&conversation(&items, &weather())).unwrap();
    let turns = "[user]A[assistant]I look.\n<|tool_call_start|>[weather(place=\"Oslo\"), \
        weather(place=\"It's \\\"Rome\\\"\")]<|tool_call_end|>[tool]rain[tool]sun[user]B";
    assert!(text.ends_with(turns), "{text}");
    let pairs = "{% if tools %}{{ tools | tojson }}<tool_call>\n<function=x>\n<parameter=y>{% endif %}\
        {% for m in messages if m.role != 'tool' %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    let text = template(pairs).text(&conversation(&items, &weather())).unwrap();
    let turns = "[assistant]I look.\n<tool_call>\n<function=weather>\n<parameter=place>\nOslo\n</parameter>\n\
        </function>\n</tool_call>\n<tool_call>\n<function=weather>\n<parameter=place>\nIt's \"Rome\"\n</parameter>\n\
        </function>\n</tool_call>[user]<tool_response>\nrain\n</tool_response>\n<tool_response>\nsun\n\
        </tool_response>[user]B";
    assert!(text.ends_with(turns), "{text}");
}
