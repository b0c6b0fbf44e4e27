import { type CallOutcome, finishNotice, type TypedAnswer } from '../../../conversation/index.ts';
import { type Clock, type JsonRecord, jsonFault } from '../../../kernel/index.ts';
import {
  CheckBudget,
  schemaFault,
  type ValueCheck,
  valueCheck,
  valueFault,
} from '../../../kernel/json-schema.ts';

/** Checks the answers of one conversation against the schemas of its turns (TYPED-3). */

/** Characters of JSON. The entry has the value besides the text, and must fit into one append. */
const MAX_VALUE = 131_072;

/** A model may put its JSON into a block of Markdown. */
const FENCED = /^```(?:json)?[ \t]*\n([\s\S]*?)\n?```$/i;

export class TypedAnswers {
  readonly #budget: CheckBudget;
  /** The objects of the log and of definitions stay the same, so a schema is compiled once. */
  readonly #checks = new WeakMap<JsonRecord, ValueCheck>();

  constructor(elapsed: Clock) {
    this.#budget = new CheckBudget(elapsed);
  }

  /** The report with the result of the check, if it is the last answer of a turn with a schema. */
  checked(report: CallOutcome, schema: JsonRecord | null): CallOutcome {
    if (schema === null || report.type !== 'model-answered') return report;
    const { answer } = report;
    if (answer.toolCalls.length > 0 || answer.finishReason === 'pause') return report;
    const typed = this.#compare(answer.content ?? '', schema);
    if (typed.kind !== 'invalid') return { ...report, answer: { ...answer, typed } };
    const cut = answer.finishReason === 'stop' ? null : finishNotice(answer.finishReason);
    const why = cut === null ? typed.why : `${typed.why}; the answer was ${cut}`;
    return { ...report, answer: { ...answer, typed: { kind: 'invalid', why } } };
  }

  #compare(content: string, schema: JsonRecord): TypedAnswer {
    const text = content.trim();
    const json = FENCED.exec(text)?.[1] ?? text;
    if (json.length > MAX_VALUE)
      return invalid(`the answer has ${json.length} characters, and at most ${MAX_VALUE} are accepted`);
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch (error) {
      return invalid(`the answer is not JSON: ${jsonFault(error)}`);
    }
    const unkept = valueFault(value);
    if (unkept !== null) return invalid(`the answer cannot be kept: ${unkept}`);
    const check = this.#checks.get(schema) ?? valueCheck(schema, this.#budget, 'answer');
    this.#checks.set(schema, check);
    const why = check(value);
    if (why === undefined) return { kind: 'unchecked', why: this.#unusable(schema) };
    return why === null ? { kind: 'valid', value } : invalid(why);
  }

  #unusable(schema: JsonRecord): string {
    const fault = schemaFault(schema, this.#budget) ?? 'comparing the answer with it took too long';
    return `The answer could not be checked: ${fault}. The answer is kept.`;
  }
}

function invalid(why: string): TypedAnswer {
  return { kind: 'invalid', why };
}
