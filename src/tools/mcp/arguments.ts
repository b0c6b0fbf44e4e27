import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { inTime } from '../../kernel/index.ts';

/** Null: the arguments fit; else what is wrong, for the model to read. */
export type ArgumentsCheck = (given: unknown) => string | null;

type Schema = Readonly<Record<string, unknown>>;

const COMPILE_MS = 1_000;
const CHECK_MS = 200;

/**
 * Checks against the server's own schema. It is compiled when it is first needed, and each by a validator of its own:
 * two servers may give different schemas the same `$id`. A schema that cannot be compiled leaves it to the server, and
 * so does a check that takes longer than a check may: the whole daemon waits for it.
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
    const validate = inTime(() => new AjvJsonSchemaValidator().getValidator(schema), COMPILE_MS);
    return (given) => {
      const result = leftToServer(() => inTime(() => validate(given), CHECK_MS));
      return result === null || result.valid ? null : inOurWords(result.errorMessage);
    };
  } catch {
    return () => null;
  }
}

/** Null: the check came to no end, or failed by itself (arguments that are nested too deeply). */
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

/** As models' providers take it: some refuse an object without `properties`, or a `$schema`. */
export function wireParameters(schema: Schema): Schema {
  const { $schema, ...rest } = schema;
  return { ...rest, type: 'object', properties: rest.properties ?? {} };
}
