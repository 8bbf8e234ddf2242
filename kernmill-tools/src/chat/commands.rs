//! Commands between the messages of a conversation.

use kernmill::{Error, Result};
use kernmill_chat::Effort;
use kernmill_os::text::shortened;
use std::path::PathBuf;

/// The commands, for people.
pub const HELP: &str = "\
/help            this list
/system TEXT     instructions; - takes them away; without TEXT, shows them
/effort LEVEL    how long the model reasons: none, low, medium or high
/lora NAME       the adapter that answers, or none; without NAME, lists them
/tools FILE      functions that the model may call; none takes them away
/reasoning HOW   fold or show the reasoning; without HOW, shows the last one
/file PATH       puts a file into the next message
/retry           another answer to the last message
/edit [TEXT]     the last message once more, changed: in the line, or to TEXT
/save FILE       writes the conversation to a file
/load FILE       goes on with the conversation of a file
/stats           figures of the last answer and of the KV cache
/clear           begins anew; instructions stay
/exit            leaves, as Ctrl-D does
A line that ends in \\ goes on in the next one; \"\"\" begins and ends a block of
lines. A message that begins with / has a space before it. Ctrl-C ends the
answer.
";

/// A command with what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ChatCommand {
    Help,
    System(String),
    Effort(Option<Effort>),
    Lora(String),
    Tools(Option<PathBuf>),
    Reasoning(Option<bool>),
    File(PathBuf),
    Retry,
    Edit(String),
    Save(PathBuf),
    Load(PathBuf),
    Stats,
    Clear,
    Exit,
}

impl ChatCommand {
    /// Reads a line that begins with `/`.
    pub(super) fn parse(line: &str) -> Result<ChatCommand> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let path = || match rest {
            "" => Err(Error::bad_input(format!("{name}: expected the name of a file behind it"))),
            path => Ok(PathBuf::from(path)),
        };
        let alone = |command| match rest {
            "" => Ok(command),
            _ => Err(Error::bad_input(format!(
                "{name}: expected nothing behind it, not `{}`",
                shortened(rest)
            ))),
        };
        match name {
            "/help" | "/?" => alone(ChatCommand::Help),
            "/system" => Ok(ChatCommand::System(rest.to_owned())),
            "/effort" if rest.is_empty() => Ok(ChatCommand::Effort(None)),
            "/effort" => {
                Effort::named(rest).map(|effort| ChatCommand::Effort(Some(effort))).ok_or_else(|| {
                    let found = shortened(rest);
                    Error::bad_input(format!(
                        "/effort: there is no level `{found}`, expected none, low, medium or high"
                    ))
                })
            }
            "/lora" => Ok(ChatCommand::Lora(rest.to_owned())),
            "/tools" if rest.is_empty() => Ok(ChatCommand::Tools(None)),
            "/tools" => Ok(ChatCommand::Tools(Some(path()?))),
            "/reasoning" => match rest {
                "" => Ok(ChatCommand::Reasoning(None)),
                "fold" | "show" => Ok(ChatCommand::Reasoning(Some(rest == "fold"))),
                _ => {
                    let found = shortened(rest);
                    Err(Error::bad_input(format!(
                        "/reasoning: expected fold, show or nothing, not `{found}`"
                    )))
                }
            },
            "/file" => Ok(ChatCommand::File(path()?)),
            "/retry" => alone(ChatCommand::Retry),
            "/edit" => Ok(ChatCommand::Edit(rest.to_owned())),
            "/save" => Ok(ChatCommand::Save(path()?)),
            "/load" => Ok(ChatCommand::Load(path()?)),
            "/stats" => alone(ChatCommand::Stats),
            "/clear" => alone(ChatCommand::Clear),
            "/exit" | "/quit" | "/bye" | "/q" => alone(ChatCommand::Exit),
            _ => Err(Error::bad_input(format!(
                "{} is no command: /help lists them; a message that begins with / has a space before it",
                shortened(name)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_others_refused() {
        assert_eq!(ChatCommand::parse("/exit").unwrap(), ChatCommand::Exit);
        assert_eq!(ChatCommand::parse("/save  my file ").unwrap(), ChatCommand::Save("my file".into()));
        assert_eq!(ChatCommand::parse("/effort low").unwrap(), ChatCommand::Effort(Some(Effort::Low)));
        assert_eq!(ChatCommand::parse("/edit\na\nb").unwrap(), ChatCommand::Edit("a\nb".to_owned()));
        for (line, says) in [
            ("/save", "/save: expected the name of a file"),
            ("/retry now", "/retry: expected nothing behind it, not `now`"),
            ("/reasoning now", "/reasoning: expected fold, show or nothing, not `now`"),
            ("/effort lots", "there is no level `lots`, expected none, low"),
            ("/etc/hosts", "/etc/hosts is no command"),
        ] {
            let error = ChatCommand::parse(line).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }

    #[test]
    fn help_lists_every_command() {
        let listed = HELP.lines().filter_map(|line| line.strip_prefix('/'));
        let listed: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(listed.len(), 14);
        assert!(HELP.lines().all(|line| line.chars().count() <= 80));
        for name in listed {
            let parsed = ChatCommand::parse(&format!("/{name}"));
            let is_unknown = parsed.is_err_and(|error| error.to_string().contains("is no command"));
            assert!(!is_unknown, "/{name}");
        }
    }
}
