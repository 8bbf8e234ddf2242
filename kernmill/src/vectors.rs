//! Vectors of texts, and scores of documents: what retrieval asks a model for.

use crate::error::Error;
use crate::text::{Model, no_tokenizer};
use kernmill_serve::{Answer, Request, Scoring, Text, Wanted};

impl Model {
    /// The vectors of texts, with their first `dimensions` elements, or all, of a model that was opened with
    /// [`Options::makes`](crate::Options::makes), or whose files say that it is for vectors. A vector depends
    /// on its text alone: not on the others, the threads or the CPU. Before each text comes the prompt of
    /// [`Options::prompt`](crate::Options::prompt), if the model has one.
    ///
    /// ```
    /// # fn main() -> Result<(), kernmill::Error> {
    /// let makes = kernmill::ModelMakes::Vectors(None);
    /// let model = kernmill::Model::nano_with(&kernmill::Options::default().with(|it| it.makes = makes))?;
    /// let vectors = model.embed(&["A slice is a view.", "A vector grows."], Some(64))?;
    /// assert_eq!(model.embed(&["A vector grows."], Some(64))?[0], vectors[1]);
    /// let scores = model.score("What is a slice?", &["What is a slice?", "Threads may panic."])?;
    /// assert!(scores[0] > scores[1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the model makes no vectors, or not of so many dimensions, or a text is empty or too long.
    pub fn embed(&self, texts: &[impl AsRef<str>], dimensions: Option<u32>) -> Result<Vec<Vec<f32>>, Error> {
        let prompt = self.image().chat_templates().prompts.of_any(&[]);
        let request = |text: &str| {
            let ids = self.encode(&[prompt, text].concat())?;
            Ok(Request::values(ids, Wanted::Vector { dimensions }))
        };
        let requests = texts.iter().map(|text| request(text.as_ref())).collect::<Result<Vec<_>, Error>>()?;
        Ok(self.values(requests)?.into_iter().map(|answer| answer.values).collect())
    }

    /// How well each document answers a query, from 0 to 1 by a reranker; by a model for vectors the cosine
    /// of the angle between them, from -1 to 1.
    ///
    /// # Errors
    /// When the model is neither, or a text is too long.
    pub fn score(&self, query: &str, documents: &[impl AsRef<str>]) -> Result<Vec<f32>, Error> {
        let scoring = Scoring::of(self.image())?;
        let tokenizer = self.tokenizer().ok_or_else(no_tokenizer)?.get()?;
        let documents: Vec<&str> = documents.iter().map(AsRef::as_ref).collect();
        let requests = scoring.requests(tokenizer, &[query], &documents, None, self.context())?;
        Ok(scoring.scores(&self.values(requests)?, documents.len()))
    }

    fn values(&self, requests: Vec<Request>) -> Result<Vec<Answer>, Error> {
        let with = |request| Request { adapters: self.about().uses.clone(), ..request };
        let all = requests.into_iter().map(|request| self.thread().text(with(request)));
        let all = all.collect::<Result<Vec<Text>, _>>()?;
        Ok(all.into_iter().map(Text::whole).collect::<Result<_, _>>()?)
    }
}
