import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { escapeTokens } from '../../conversation/index.ts';
import {
  type Clock,
  cut,
  hasLoneSurrogate,
  inOneLine,
  inTime,
  isRecord,
  isShallow,
  linearPattern,
  MAX_DEPTH,
  percentDecoded,
  shown,
} from '../../kernel/index.ts';

/** Null: the arguments match the schema; else the error, for the model. */
export type ArgumentsCheck = (given: unknown) => string | null;

type Schema = Readonly<Record<string, unknown>>;

/**
 * Processor time for the checks of one server. They block the daemon, and a schema can be hostile: one that refers to itself twice
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
    const before = process.cpuUsage();
    try {
      return inTime(work, Math.floor(this.#leftMs));
    } catch {
      return null;
    } finally {
      const { user, system } = process.cpuUsage(before);
      this.#leftMs -= Math.min(this.#elapsed() - start, (user + system) / 1_000); // on a busy machine, little of it is ours
    }
  }
}

const BUDGET_MS = 1_000;
/** The part of the passing time that is added to the budget. */
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

/**
 * Why a strict provider would refuse every request that offers this tool; null: it would not. One of them reads all tools of a
 * request as JSON Schema, and texts as UTF-8.
 */
export function toolFault(
  { name, title, description, inputSchema }: Tool,
  budget: CheckBudget,
): string | null {
  if (!isShallow(inputSchema)) return `its schema is nested deeper than ${MAX_DEPTH} levels`;
  if (hasHalf([name, title, description, inputSchema])) return 'it has half a character (a lone surrogate)';
  const dangling = refsOf(inputSchema).find((ref) => !resolves(inputSchema, ref));
  if (dangling !== undefined) return `its schema refers to ${shown(dangling)}, which it does not contain`;
  metaAjv ??= checkedAjv();
  const ajv = metaAjv;
  return budget.spend(() => schemaFault(inputSchema, ajv))?.text ?? null; // without time, it counts as right
}

/** Keeps nothing of what it checks. Creating it takes longer than many checks, and is not the server's work. */
let metaAjv: AjvOfSdk | null = null;

function checkedAjv(): AjvOfSdk {
  const ajv = ajvOf(new AjvJsonSchemaValidator());
  ajv.validateSchema({}); // compiles the schema of schemas
  return ajv;
}

/** By the schema of draft 7, which Ajv has; nothing that this refuses is right in a newer draft. */
function schemaFault(schema: Schema, ajv: AjvOfSdk): { readonly text: string | null } {
  const { $schema, $async, ...rest } = schema;
  if (ajv.validateSchema(rest)) return { text: null };
  const first = ajv.errorsText(ajv.errors?.slice(0, 1), { dataVar: 'schema' });
  return { text: `its schema is invalid: ${inOneLine(cut(first, 200))}` };
}

function hasHalf(value: unknown): boolean {
  if (typeof value === 'string') return hasLoneSurrogate(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => hasLoneSurrogate(key) || hasHalf(inner));
}

function refsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : refsOf(inner),
  );
}

/** Only pointers into the schema itself: `#/$defs/file`. */
function resolves(schema: Schema, ref: string): boolean {
  if (!/^#(?:\/|$)/.test(ref)) return false;
  const keys = ref.split('/').slice(1);
  let value: unknown = schema;
  for (const key of keys) {
    const plain = percentDecoded(key).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, plain)) return false;
    value = Reflect.get(value, plain);
  }
  return true;
}

interface AjvOfSdk {
  logger: object;
  readonly opts: { readonly code: object };
  readonly errors: readonly object[] | null;
  validateSchema(schema: object): boolean;
  errorsText(errors: readonly object[] | undefined, options: { readonly dataVar: string }): string;
}

function ajvOf(validator: AjvJsonSchemaValidator): AjvOfSdk {
  const ajv = Reflect.get(validator, '_ajv') as AjvOfSdk;
  // Ajv prints what it does not know of the schema, with control characters, to the terminal of the daemon.
  ajv.logger = SILENT;
  Object.assign(ajv.opts.code, { regExp: Object.assign(patternOfSchema, { code: 'patternOfSchema' }) });
  return ajv;
}

/** Without `$async`: an asynchronous check would reject unhandled, which ends the process. */
function validatorOf({ $async, ...schema }: Schema) {
  const validator = new AjvJsonSchemaValidator();
  ajvOf(validator);
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

/**
 * The schema for providers: some refuse an object without `properties`, a `$schema`, an array without `items`, a list of them
 * (`prefixItems` since 2020-12), or alternatives at the top, whose properties are then optional ones. Our check, and the
 * server's, use the schema as it is.
 */
export function wireParameters(schema: Schema): Schema {
  const { $schema, anyOf, oneOf, allOf, not, enum: values, ...rest } = schema;
  const branches = [anyOf, oneOf, allOf].flat().filter(isRecord);
  const inBranches = Object.assign({}, ...branches.map(({ properties }) => properties));
  return withItems({ ...rest, type: 'object', properties: { ...inBranches, ...Object(rest.properties) } });
}

/** Under these keys are names of the server, not keywords. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Under these are texts of the server, in which special tokens of chat templates are escaped (MARKER-3). */
const TEXTS = new Set(['title', 'description', '$comment']);
/** Under these are values. */
const VALUES = new Set(['enum', 'const', 'default', 'examples', 'required']);

function withItems(schema: Schema): Schema {
  const kept = Object.entries(schema).map(([key, value]): [string, unknown] => {
    if (VALUES.has(key)) return [key, value];
    if (TEXTS.has(key) && typeof value === 'string') return [key, escapeTokens(value)];
    if (NAMED.has(key) && isRecord(value))
      return [key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inSchema(inner)]))];
    return [key, Array.isArray(value) ? value.map(inSchema) : inSchema(value)];
  });
  const result: Record<string, unknown> = Object.fromEntries(kept);
  if (Array.isArray(result.items)) {
    result.prefixItems = result.items;
    result.items = result.additionalItems ?? {};
    delete result.additionalItems;
  } else if ([result.type].flat().includes('array')) result.items ??= {};
  return result;
}

function inSchema(value: unknown): unknown {
  return isRecord(value) ? withItems(value) : value;
}
