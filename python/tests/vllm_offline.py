"""Offline inference as scripts for vLLM have it; a test changes the import and runs it."""

import sys

from vllm import LLM, SamplingParams

prompts = [
    "# References and Borrowing\n\nA reference is",
    "A slice is",
    "A vector is",
    "The compiler",
]
sampling_params = SamplingParams(temperature=0.8, top_p=0.95, seed=1, max_tokens=12)


def main() -> None:
    llm = LLM(model=sys.argv[1], max_model_len=512, enforce_eager=True, trust_remote_code=True)
    outputs = llm.generate(prompts, sampling_params)
    print("-" * 60)
    for output in outputs:
        prompt = output.prompt
        generated = output.outputs[0].text
        print(f"Prompt:    {prompt!r}")
        print(f"Generated: {generated!r} ({output.outputs[0].finish_reason})")
        print("-" * 60)
    conversation = [
        {"role": "system", "content": "You are a helpful assistant"},
        {"role": "user", "content": "What is a slice?"},
    ]
    for output in llm.chat(conversation, sampling_params=sampling_params, use_tqdm=False):
        print(len(output.prompt_token_ids), output.outputs[0].token_ids)


if __name__ == "__main__":
    main()
