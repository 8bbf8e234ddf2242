//! Whether prompts fit the context.

use crate::failure::{Failure, Result};

/// What helps when a prompt does not fit a context of `context` tokens, as the end of a message that states the context.
pub fn what_helps(context: u32, longest: u32) -> String {
    if context < longest {
        format!(": shorten it, or raise --context (at most {longest}, the model's longest)")
    } else {
        ", the model's longest: shorten it".to_owned()
    }
}

/// Fails unless a prompt has tokens and they fit the context, which is `longest` at most.
pub fn check_length(tokens: usize, context: u32, longest: u32) -> Result<()> {
    if tokens == 0 {
        return Err(Failure::BadInput(
            "the prompt has no tokens, expected at least one to start from".to_owned(),
        ));
    }
    if tokens > context as usize {
        let help = what_helps(context, longest);
        return Err(Failure::BadInput(format!(
            "the prompt has {tokens} tokens, the context holds {context}{help}"
        )));
    }
    Ok(())
}
