import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { inTime } from '../../kernel/index.ts';

/** Null: the arguments match the schema; else the error, for the model. */
export type ArgumentsCheck = (given: unknown) => string | null;

type Schema = Readonly<Record<string, unknown>>;

const COMPILE_MS = 1_000;
const CHECK_MS = 200;

/**
 * Checks against the server's schema, compiled at first use by a validator of its own: two servers may use the same `$id`
 * for different schemas. If compiling fails or a check takes too long (it blocks the daemon), the server checks instead.
 */
export function argumentsCheck(schema: Schema): ArgumentsCheck {
  let validate: ArgumentsCheck | null = null;
  return (given) => {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      return 'the arguments must be an object';
    validate ??= compile(schema);
    return validate(given);
  };
}

function compile(schema: Schema): ArgumentsCheck {
  try {
    const validate = inTime(() => validatorOf(schema), COMPILE_MS);
    return (given) => {
      const result = leftToServer(() => inTime(() => validate(given), CHECK_MS));
      return result === null || result.valid ? null : inOurWords(result.errorMessage);
    };
  } catch {
    return () => null;
  }
}

/** Without `$async`: an asynchronous check would reject unhandled, which ends the process. */
function validatorOf({ $async, ...schema }: Schema) {
  const validator = new AjvJsonSchemaValidator();
  // Ajv prints what it does not know of the schema, with control characters, to the terminal of the daemon.
  Object.assign(Reflect.get(validator, '_ajv') as object, { logger: SILENT });
  return validator.getValidator<unknown>(schema);
}

const silent = () => undefined;
const SILENT = { log: silent, warn: silent, error: silent };

/** Null: the check timed out or threw (arguments nested too deeply). */
function leftToServer<Result>(check: () => Result): Result | null {
  try {
    return check();
  } catch {
    return null;
  }
}

/** `data/path must be string, data must have …` */
function inOurWords(message: string): string {
  return message.replaceAll(/(^|, )data(?=[/ ])/g, '$1arguments');
}

/** The schema for providers: some refuse an object without `properties`, or a `$schema`. */
export function wireParameters(schema: Schema): Schema {
  const { $schema, ...rest } = schema;
  return { ...rest, type: 'object', properties: rest.properties ?? {} };
}
