import type { Model, ModelRequest, Toolbox, ToolDefinition, ToolOutcome } from '../agents/index.ts';
import { type Config, didYouMean } from '../config/index.ts';
import { abortable, messageOf, nearest, ParleyError } from '../kernel/index.ts';
import {
  createFunctionModel,
  createScriptedModel,
  loadScript,
  type ModelFunction,
  type ScriptedModelOptions,
} from '../models/index.ts';
import { failed, type InProcessTool, type ToolCall, toolOutcome } from '../tools/index.ts';

/** A function, or the path of a script (docs/guides/model-providers.md). */
export type ModelSource = ModelFunction | string;

/** Replaces what a tool does; its name, schema, risk and policy stay. */
export type FakeTool = (input: Record<string, unknown>, call: ToolCall) => unknown;

interface StandInOptions {
  /** For all agents, or by the slug of an agent or the name of a model. `default`: for every other. */
  readonly models?: ModelSource | Readonly<Record<string, ModelSource>> | undefined;
  readonly tools?: readonly InProcessTool[] | undefined;
  readonly fakes?: Readonly<Record<string, FakeTool>> | undefined;
}

/** Models and tools of a test; counts the calls that wait for a function of the test. */
export class StandIns {
  readonly requests: ModelRequest[] = [];
  /** Calls in progress. */
  waiting = 0;
  readonly #sources = new Map<string, Model>();
  readonly #fakes: Readonly<Record<string, FakeTool>>;
  readonly #own: ReadonlySet<string>;
  /** Names in the files of agents: also of tools that do not exist. */
  readonly #listed: ReadonlySet<string>;

  private constructor({ fakes = {}, tools = [] }: StandInOptions, { agents }: Config) {
    this.#fakes = fakes;
    this.#listed = new Set(agents.flatMap((agent) => agent.tools));
    this.#own = new Set([...tools.map(({ definition }) => definition.name), ...Object.keys(fakes)]);
  }

  static async create(
    options: StandInOptions,
    config: Config,
    sleep: ScriptedModelOptions['sleep'],
  ): Promise<StandIns> {
    const standIns = new StandIns(options, config);
    const { models = {} } = options;
    const sources = typeof models === 'object' ? models : { default: models };
    const known = [...config.agents.map(({ slug }) => slug), ...Object.keys(config.models), 'default'];
    const modelOf = async (source: ModelSource | undefined) =>
      typeof source === 'function'
        ? createFunctionModel(source)
        : createScriptedModel(await loadScript(source), { sleep });
    for (const [name, source] of Object.entries(sources)) {
      if (!known.includes(name)) throw unknown(name, known);
      standIns.#sources.set(name, await modelOf(source));
    }
    for (const [name, model] of Object.entries(config.models)) {
      if (model.provider !== 'scripted' || model.script === null || standIns.#has(name)) continue;
      standIns.#sources.set(name, await modelOf(model.script));
    }
    return standIns;
  }

  #has(name: string): boolean {
    return this.#sources.has(name) || this.#sources.has('default');
  }

  /** Answers for the agents that use this model. */
  model(name: string): Model {
    return {
      call: (request, options) => {
        this.requests.push(request);
        const sources = this.#sources;
        const model = sources.get(request.agent) ?? sources.get(name) ?? sources.get('default');
        return model ? this.#count(model.call(request, options)) : Promise.reject(noModel(request, name));
      },
    };
  }

  /** Throws `TOOL_INVALID` for a fake of no tool: the one that was meant would have its effects. */
  wrapTools(toolbox: Toolbox): Toolbox {
    const fakes = new Map(Object.entries(this.#fakes));
    const real = new Set([...toolbox.definitions().keys(), ...this.#listed]);
    for (const name of fakes.keys())
      if (!real.has(name) && !name.startsWith('mcp__')) throw noTool(name, real);
    const without = (name: string) => !toolbox.definitions().has(name);
    const definitions = () => {
      const known = toolbox.definitions();
      const added = [...fakes.keys()].filter(without).map((name) => [name, undeclared(name)] as const);
      return added.length === 0 ? known : new Map([...known, ...added]);
    };
    return {
      ...toolbox,
      definitions,
      check: (name, given) => (fakes.has(name) && without(name) ? null : toolbox.check(name, given)),
      run: (call, signal) => {
        const fake = fakes.get(call.name);
        const running = fake ? outcomeOf(fake, call, signal) : toolbox.run(call, signal);
        return this.#own.has(call.name) ? this.#count(running) : running;
      },
    };
  }

  async #count<T>(work: Promise<T>): Promise<T> {
    this.waiting += 1;
    try {
      return await work;
    } finally {
      this.waiting -= 1;
    }
  }
}

async function outcomeOf(
  fake: FakeTool,
  { name, arguments: input, ...call }: Parameters<Toolbox['run']>[0],
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const run = async (): Promise<ToolOutcome> => {
    try {
      return toolOutcome(await fake({ ...input }, { ...call, signal }));
    } catch (error) {
      return failed('TOOL_FAILED', `${name}: ${messageOf(error)}`);
    }
  };
  return abortable(run(), signal).catch((): ToolOutcome => ({ kind: 'aborted' }));
}

/** A tool of a server that is not started. */
function undeclared(name: string): ToolDefinition {
  return { name, description: '', parameters: { type: 'object', properties: {} }, risk: 'risky' };
}

function unknown(name: string, known: readonly string[]): ParleyError {
  const { hint = `known: ${[...new Set(known)].join(', ')}` } = didYouMean(nearest(name, known));
  return new ParleyError('MODEL_UNKNOWN', `the team has no agent and no model ${name}`, { hint });
}

function noTool(name: string, known: ReadonlySet<string>): ParleyError {
  const { hint = 'name a tool as agents do' } = didYouMean(nearest(name, [...known]));
  return new ParleyError('TOOL_INVALID', `the fake ${name} replaces no tool of this team`, { hint });
}

function noModel({ agent }: ModelRequest, name: string): ParleyError {
  return new ParleyError('MODEL_UNKNOWN', `testTeam has no model for ${agent} (model ${name})`, {
    hint: 'give testTeam `models`: a function for all, or one under the agent, the model or `default`',
  });
}
