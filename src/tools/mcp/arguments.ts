import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { type Clock, inTime, linearPattern } from '../../kernel/index.ts';

/** Null: the arguments match the schema; else the error, for the model. */
export type ArgumentsCheck = (given: unknown) => string | null;

type Schema = Readonly<Record<string, unknown>>;

/**
 * Time for the checks of one server. They block the daemon, and a schema can be hostile: one that refers to itself twice
 * takes exponential time. Nothing is checked here while there is no time left.
 */
export class CheckBudget {
  readonly #elapsed: Clock;
  #leftMs = BUDGET_MS;
  #at: number;

  constructor(elapsed: Clock) {
    this.#elapsed = elapsed;
    this.#at = elapsed();
  }

  /** Undefined: no time is left. Null: there was not enough, or the work threw (arguments nested too deeply). */
  spend<Result>(work: () => Result): Result | null | undefined {
    const start = this.#elapsed();
    this.#leftMs = Math.min(BUDGET_MS, this.#leftMs + (start - this.#at) * REFILL);
    this.#at = start;
    if (this.#leftMs < 1) return undefined;
    try {
      return inTime(work, Math.floor(this.#leftMs));
    } catch {
      return null;
    } finally {
      this.#leftMs -= this.#elapsed() - start;
    }
  }
}

const BUDGET_MS = 500;
/** Of the time that passes. */
const REFILL = 0.01;

/**
 * Checks against the server's schema, compiled at first use by a validator of its own: two servers may use the same `$id`
 * for different schemas. Where it cannot be compiled or the budget is spent, the server checks instead.
 */
export function argumentsCheck(schema: Schema, budget: CheckBudget): ArgumentsCheck {
  let validate: ReturnType<typeof validatorOf> | null | undefined;
  return (given) => {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      return 'the arguments must be an object';
    if (validate === undefined) validate = budget.spend(() => validatorOf(schema));
    const check = validate;
    const result = check && budget.spend(() => check(given));
    return !result || result.valid ? null : inOurWords(result.errorMessage);
  };
}

/** Without `$async`: an asynchronous check would reject unhandled, which ends the process. */
function validatorOf({ $async, ...schema }: Schema) {
  const validator = new AjvJsonSchemaValidator();
  const ajv = Reflect.get(validator, '_ajv') as { logger: object; opts: { code: object } };
  // Ajv prints what it does not know of the schema, with control characters, to the terminal of the daemon.
  ajv.logger = SILENT;
  Object.assign(ajv.opts.code, { regExp: Object.assign(patternOfSchema, { code: 'patternOfSchema' }) });
  return validator.getValidator<unknown>(schema);
}

/** Throws for a pattern without a linear form: the server then checks the arguments. `toString`: Ajv's key. */
function patternOfSchema(source: string) {
  return { ...linearPattern(source), toString: () => `/${source}/` };
}

const silent = () => undefined;
const SILENT = { log: silent, warn: silent, error: silent };

/** `data/path must be string, data must have …` */
function inOurWords(message: string): string {
  return message.replaceAll(/(^|, )data(?=[/ ])/g, '$1arguments');
}

/** The schema for providers: some refuse an object without `properties`, or a `$schema`. */
export function wireParameters(schema: Schema): Schema {
  const { $schema, ...rest } = schema;
  return { ...rest, type: 'object', properties: rest.properties ?? {} };
}
