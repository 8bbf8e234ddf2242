//! The thread that makes texts, its handles, and texts as iterators.

use super::*;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

fn started(sequences: u32) -> ServingThread {
    ServingThread::anywhere(serve_on(engine(256, sequences, None), SchedulerConfig::default()))
}

/// One whose engine waits after its third token until the other end of the channel is told, or dropped.
fn held() -> (ServingThread, Sender<()>) {
    let (go_on, told) = channel::<()>();
    let mut told = Some(told);
    let observer = move |serving: &mut Serving| {
        if serving.stats().generated == 3 {
            told.take().map(|told| told.recv());
        }
    };
    (
        ServingThread::start(serve_on(engine(256, 1, None), SchedulerConfig::default()), observer).unwrap(),
        go_on,
    )
}

/// Tells a request's answer.
struct Answers(Sender<Answer>);

impl Listener for Answers {
    fn taken(&mut self, taken: Result<()>) {
        taken.unwrap();
    }

    fn hear(&mut self, event: RequestEvent) -> bool {
        match event {
            RequestEvent::Token(_) => true,
            RequestEvent::Done(answer) => self.0.send(*answer).is_ok(),
        }
    }
}

/// A text of 200 tokens that nothing ends.
fn long() -> Request {
    Request { drafts: false, ..Request::greedy(vec![5, 6, 7], 200) }
}

#[test]
fn threads_share_an_engine_and_get_their_own_texts() {
    let (thread, mut solo) = (started(4), engine(256, 1, None));
    let requests = requests(12);
    let expected: Vec<Alone> = requests.iter().map(|request| alone(&mut solo, request)).collect();
    std::thread::scope(|scope| {
        for (request, expected) in requests.iter().zip(&expected) {
            let thread = thread.clone();
            scope.spawn(move || {
                let mut text = thread.text(request.clone()).unwrap();
                let pieces: String = text.by_ref().map(Result::unwrap).collect();
                let answer = text.answer().unwrap();
                assert_eq!((&pieces, &answer.tokens), (&expected.text, &expected.tokens));
                assert_eq!((&answer.text, &answer.finish), (&expected.text, &expected.finish));
            });
        }
    });
}

#[test]
fn requests_that_wait_are_made_together() {
    let thread = started(4);
    let ((go_on, told), (answer, answers)) = (channel::<()>(), channel());
    thread.give(move |_| told.recv().unwrap());
    let hand_in = |_| thread.submit(long(), Answers(answer.clone()));
    let tickets: Vec<Ticket> = (0..4).map(hand_in).collect();
    go_on.send(()).unwrap();
    let expected = answers.recv().unwrap();
    assert!(answers.iter().take(3).all(|answer| answer.tokens == expected.tokens));
    drop(tickets);
    let widest = thread.run(|serving| serving.stats().widths.keys().max().copied()).unwrap();
    assert_eq!(widest, Some(4));
}

#[test]
fn a_text_that_is_dropped_ends() {
    let (thread, go_on) = held();
    let mut first = thread.text(long()).unwrap();
    assert!(first.next_token().unwrap().is_some());
    drop(first);
    drop(go_on);
    // There is one place: the next text would wait for all tokens of the first.
    let second = thread.text(Request::greedy(vec![8, 9], 3)).unwrap().whole().unwrap();
    assert_eq!(second.tokens.len(), 3);
    let generated = thread.run(|serving| serving.stats().generated).unwrap();
    assert!(generated < 10, "{generated} tokens");
}

#[test]
fn a_text_that_is_stopped_keeps_what_was_made() {
    let (thread, go_on) = held();
    let mut text = thread.text(long()).unwrap();
    text.next_token().unwrap();
    text.cancel();
    drop(go_on);
    let answer = text.answer().unwrap();
    assert!(answer.finish == Finish::CANCELLED && answer.tokens.len() < 200, "{answer:?}");
}

#[test]
fn what_is_refused_says_why() {
    let thread = started(1);
    let error = thread.text(Request::greedy(Vec::new(), 3)).map(drop).unwrap_err();
    assert!(error.to_string().contains("no tokens"), "{error}");
    let error = thread.follow(Request::greedy(Vec::new(), 3), |_| true).unwrap_err();
    assert!(error.to_string().contains("no tokens"), "{error}");
    thread.end();
    for _ in 0..2 {
        let error = thread.text(Request::greedy(vec![1], 3)).map(drop).unwrap_err().to_string();
        assert!(error.contains("has ended") || error.contains("has been closed"), "{error}");
    }
}

#[test]
fn tokens_are_followed_on_the_engines_thread_until_one_is_enough() {
    let thread = started(1);
    let ((tell, told), mut count) = (channel(), 0);
    let answer = thread.follow(long(), move |token: Token| {
        let name = std::thread::current().name().map(str::to_owned);
        tell.send((token.id, name)).unwrap();
        count += 1;
        count < 3
    });
    let answer = answer.unwrap();
    let heard: Vec<(u32, Option<String>)> = told.iter().collect();
    assert!(heard.iter().all(|(_, name)| name.as_deref() == Some("kernmill-engine")));
    assert_eq!(answer.finish, Finish::CANCELLED);
    let ids: Vec<u32> = heard.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, answer.tokens);
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_panic_ends_the_engine_and_is_told_to_all() {
    let (thread, go_on) = held();
    let mut text = thread.text(long()).unwrap();
    text.next_token().unwrap();
    thread.give(|_| panic!("a job's"));
    drop(go_on);
    // The error is told once, and ends the text.
    assert_eq!(text.by_ref().take(1000).filter(Result::is_err).count(), 1);
    assert!(text.next().is_none());
    let error = text.whole().map(drop).unwrap_err().to_string();
    assert!(error.contains("panicked"), "{error}");
    assert!(thread.failure().is_some_and(|why| why.contains("panicked")));
    let error = thread.text(long()).map(drop).unwrap_err().to_string();
    assert!(error.contains("panicked"), "{error}");
    assert!(thread.run(|serving| serving.len()).is_err());
}

#[test]
fn a_reply_that_fails_leaves_the_conversation_as_it_was() {
    let model = kernmill::Model::nano().unwrap();
    let mut chat = model.chat().unwrap();
    chat.send("What is 2 + 3?").unwrap().text().unwrap();
    // An answer that is long on its way.
    let letters = kernmill::Rule::Regex("[a-z]{1200}".to_owned());
    chat.sampling(&kernmill::Sampling::greedy().max_tokens(1500).with(|it| it.rule = Some(letters)));
    let before = chat.conversation().clone();
    let mut reply = chat.send("And what is a slice?").unwrap();
    reply.next_event().unwrap();
    assert!(model.thread().run(|_| panic!("a job's")).map(drop).is_err());
    assert_eq!(reply.by_ref().take(1000).filter(|said| said.is_err()).count(), 1);
    assert!(reply.next().is_none());
    assert!(reply.answered().is_err());
    assert_eq!(*chat.conversation(), before);
}

#[test]
fn jobs_that_were_given_are_done_before_it_ends_and_one_may_hold_the_last_handle() {
    let thread = started(1);
    let done = Arc::new(AtomicU64::new(0));
    for _ in 0..50 {
        let done = Arc::clone(&done);
        thread.give(move |_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    drop(thread);
    assert_eq!(done.load(Ordering::Relaxed), 50);

    let thread = started(1);
    let (own, (gone, is_gone)) = (thread.clone(), channel());
    thread.give(move |_| {
        // By now the other handle is dropped, or will be.
        drop(own);
        gone.send(()).unwrap();
    });
    drop(thread);
    is_gone.recv().unwrap();
}

#[test]
fn the_end_waits_for_texts_and_a_last_handle_cancels_them() {
    let thread = started(1);
    let text = thread.text(long()).unwrap();
    thread.end();
    assert_eq!(text.whole().unwrap().tokens.len(), 200);

    let thread = started(1);
    let start = Instant::now();
    drop((thread.text(long()).unwrap(), thread));
    assert!(start.elapsed() < Duration::from_secs(60));
}
