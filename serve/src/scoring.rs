//! How well documents answer a query: the requests that tell it, and the scores of their answers.

use crate::error::{Error, Result};
use crate::request::{Answer, Request};
use crate::values::Wanted;
use kernmill_runtime::{PlanImage, Tokenizer};

/// How a model tells how well a document answers a query.
#[derive(Clone, Debug)]
pub enum Scoring {
    /// By the angle between their vectors.
    Cosine {
        /// Texts before queries, and before documents.
        prompts: [String; 2],
    },
    /// By whether it goes on with yes or with no.
    YesOrNo {
        /// Parts of the prompt: before both texts, the texts with their names, behind them.
        parts: [String; 3],
        /// Ids of the two answers.
        tokens: [u32; 2],
    },
}

/// Name of a chat template for scores, in which `{query}` and `{document}` stand for the texts.
const RERANK: &str = "rerank";
/// The purpose of a query that Qwen3-Reranker is told where nobody says another.
const INSTRUCTION: &str = "Given a web search query, retrieve relevant passages that answer the query";
/// The prompt of Qwen3-Reranker.
const QWEN3: &str = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query \
    and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n\
    <|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n\
    <Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

impl Scoring {
    /// How this model does it.
    ///
    /// # Errors
    /// When the model is for neither vectors nor scores, or has no tokenizer.
    pub fn of(image: &PlanImage) -> Result<Scoring> {
        let model = &image.program().model;
        if model.vectors().is_some() {
            let prompts = &image.chat_templates().prompts;
            let purposes: [&[&str]; 2] = [&["query"], &["document", "passage", "corpus"]];
            let prompts = purposes.map(|any| prompts.of_any(any).to_owned());
            return Ok(Scoring::Cosine { prompts });
        }
        let template = image.chat_templates().named(RERANK).map(|template| template.text.as_str());
        let tokenizer = tokenizer(image)?;
        let is_qwen3 = || {
            let name = model.name.to_ascii_lowercase();
            name.contains("rerank") && tokenizer.special_token_id("<|im_start|>").is_some()
        };
        let refused = |why: &str| {
            Error::BadInput(format!(
                "{} gives no scores: {why}; expected Qwen3-Reranker, a model with a chat template `{RERANK}`, or \
                 one for vectors (--vectors last)",
                model.name
            ))
        };
        let template = template.or_else(|| is_qwen3().then_some(QWEN3));
        let template = template.ok_or_else(|| refused("it is no reranker that is known here"))?;
        let parts =
            parts(template, tokenizer).ok_or_else(|| refused("its template lacks {query} or {document}"))?;
        match ["yes", "no"].map(|word| tokenizer.token_id(word)) {
            [Some(yes), Some(no)] => Ok(Scoring::YesOrNo { parts, tokens: [yes, no] }),
            _ => Err(refused("its vocabulary lacks `yes` or `no`")),
        }
    }

    /// The requests that scores are made of: for each document one, behind those of the queries if vectors
    /// are compared. There are as many queries as documents, or one for all. `instruction` says what the
    /// queries are for.
    ///
    /// # Errors
    /// When a text has no tokens, or more than `most`.
    pub fn requests(
        &self,
        tokenizer: &Tokenizer,
        queries: &[&str],
        documents: &[&str],
        instruction: Option<&str>,
        most: u32,
    ) -> Result<Vec<Request>> {
        let most = most as usize;
        match self {
            Scoring::Cosine { prompts: [query, document] } => {
                let request = |(prompt, text): (&String, &&str)| {
                    let ids = tokenizer.encode_within(&[prompt, *text].concat(), true, most)?;
                    Ok(Request::values(ids, Wanted::Vector { dimensions: None }))
                };
                let queries = queries.iter().map(|text| (query, text));
                queries.chain(documents.iter().map(|text| (document, text))).map(request).collect()
            }
            Scoring::YesOrNo { parts: [before, texts, behind], tokens } => {
                let [before, behind] = [tokenizer.encode(before, false)?, tokenizer.encode(behind, false)?];
                let texts = texts.replace(INSTRUCTION, instruction.unwrap_or(INSTRUCTION));
                let (head, rest) = texts.split_once("{query}").unwrap_or((&texts, ""));
                let (between, tail) = rest.split_once("{document}").unwrap_or((rest, ""));
                let request = |(query, document): (&&str, &&str)| {
                    let text = [head, query, between, document, tail].concat();
                    tokenizer.check_length(text.len(), most)?;
                    let ids = [&before[..], &tokenizer.encode_ordinary(&text)?, &behind].concat();
                    Ok(Request::values(ids, Wanted::Logits(tokens.to_vec())))
                };
                queries.iter().cycle().zip(documents).map(request).collect()
            }
        }
    }

    /// The scores of so many documents, of the answers to [`Scoring::requests`].
    pub fn scores(&self, answers: &[Answer], documents: usize) -> Vec<f32> {
        let (queries, found) = answers.split_at(answers.len() - documents);
        match self {
            Scoring::Cosine { .. } => {
                let pairs = queries.iter().cycle().zip(found);
                pairs.map(|(query, document)| cosine(&query.values, &document.values)).collect()
            }
            Scoring::YesOrNo { .. } => found.iter().map(|answer| share(&answer.values)).collect(),
        }
    }
}

/// Before the texts, with them, and behind them: the texts' part goes from the line behind the last special
/// token before them to the first one behind. `None` where a text has no place.
fn parts(template: &str, tokenizer: &Tokenizer) -> Option<[String; 3]> {
    let query = template.find("{query}")?;
    let document = query + template[query..].find("{document}")?;
    let mut start = 0;
    while let Some(token) = tokenizer.special_token_in(&template[start..query]) {
        start += template[start..query].find(token)? + token.len();
    }
    if start > 0 {
        start += template[start..query].find('\n').map_or(0, |at| at + 1);
    }
    let mut end = template.len();
    while let Some(token) = tokenizer.special_token_in(&template[document..end]) {
        end = document + template[document..end].find(token)?;
    }
    Some([&template[..start], &template[start..end], &template[end..]].map(str::to_owned))
}

fn tokenizer(image: &PlanImage) -> Result<&Tokenizer> {
    let tokenizer = image.tokenizer().ok_or_else(|| {
        Error::BadInput("the model has no tokenizer: give token ids to its thread".to_owned())
    })?;
    Ok(tokenizer.get()?)
}

/// The cosine of the angle between two vectors; 0 if one has no length.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0_f32, |sum, (a, b)| sum + a * b);
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

/// The share of the first of two logits in their softmax.
fn share(logits: &[f32]) -> f32 {
    match logits {
        [yes, no] => (1.0 / (1.0 + (f64::from(*no) - f64::from(*yes)).exp())) as f32,
        _ => 0.0,
    }
}
