"""Texts in several ways: `python texts.py [MODEL]`. Without a model, the embedded nano model runs."""

import asyncio
import sys

from kernmill import LLM, AsyncLLM, SamplingParams

MODEL = sys.argv[1] if len(sys.argv) > 1 else None


def one_after_the_other() -> None:
    """Several prompts together, and a text as it comes."""
    with LLM(MODEL) as llm:
        params = SamplingParams(temperature=0, max_tokens=24)
        for output in llm.generate(["A slice is", "A vector is"], params):
            print(output.prompt, output.outputs[0].text, sep="")
        for delta in llm.stream("A reference is", params):
            print(delta.text, end="", flush=True)
        print()
        print(f"perplexity {llm.score('A slice is a view').perplexity:.1f}")


async def side_by_side() -> None:
    """Two tasks, whose texts grow together."""
    async with await AsyncLLM.create(MODEL) as llm:

        async def follow(prompt: str) -> str:
            params = SamplingParams(temperature=0.7, seed=1, max_tokens=24)
            return prompt + "".join([delta.text async for delta in llm.stream(prompt, params)])

        print(*await asyncio.gather(follow("A trait is"), follow("An enum is")), sep="\n")


if __name__ == "__main__":
    one_after_the_other()
    asyncio.run(side_by_side())
