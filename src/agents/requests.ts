import {
  AgentView,
  type Conversation,
  type ConversationState,
  type Entry,
  type Mode,
  modeAt,
  type Roster,
  type View,
  type ViewPolicy,
} from '../conversation/index.ts';
import { type Assembled, type ModelProfile, RequestAssembler } from './assemble.ts';
import type { PersonaSource, PromptTexts } from './prompt.ts';
import { prefix } from './prompt.ts';

/** An agent as the daemon runs it. */
export interface AgentSetup extends PersonaSource {
  readonly profile: ModelProfile;
  readonly viewPolicy: ViewPolicy;
}

/** What requests are made of besides the log; the same for all conversations. */
export interface RequestSources {
  readonly roster: Roster;
  readonly prompts: PromptTexts;
  readonly agents: ReadonlyMap<string, AgentSetup>;
}

/** Makes the requests of one conversation, keeping each agent's bytes from one to the next. */
export class Requests {
  private readonly sources: RequestSources;
  private readonly conversation: string;
  private readonly assemblers = new Map<string, RequestAssembler>();

  constructor(conversation: string, sources: RequestSources) {
    this.conversation = conversation;
    this.sources = sources;
  }

  /** The request that an agent's running turn makes next. The same for the same log, today or after a crash (L6). */
  next(log: Conversation, agent: string, turnId: string): Assembled | null {
    const setup = this.sources.agents.get(agent);
    const turn = log.state.agents[agent]?.turn;
    if (!setup || turn?.turnId !== turnId) return null;
    let assembler = this.assemblers.get(agent);
    if (!assembler) {
      assembler = new RequestAssembler();
      this.assemblers.set(agent, assembler);
    }
    const mode = modeAt(log.state, turn.askedAt);
    return assembler.assemble(this.parts(setup, log.view(agent).build(), mode, turnId));
  }

  private parts(setup: AgentSetup, view: View, mode: Mode, turnId: string) {
    return requestParts(this.sources, setup, view, { conversation: this.conversation, mode, turnId });
  }
}

function requestParts(
  sources: RequestSources,
  setup: AgentSetup,
  view: View,
  call: { readonly conversation: string; readonly mode: Mode; readonly turnId: string },
) {
  return {
    conversation: call.conversation,
    agent: setup.card.slug,
    turnId: call.turnId,
    prefix: prefix(setup, call.mode, sources.prompts, sources.roster),
    view,
    tools: [],
    profile: setup.profile,
  };
}

/** Makes the request of a log that was built elsewhere: `state` and `entries` belong together. */
export function assembleOnce(
  sources: RequestSources,
  setup: AgentSetup,
  entries: readonly Entry[],
  state: ConversationState,
  conversation: string,
): { readonly assembled: Assembled; readonly view: View } {
  const turn = state.agents[setup.card.slug]?.turn;
  const mode = turn ? modeAt(state, turn.askedAt) : state.mode;
  const view = new AgentView(entries, setup.card.slug, setup.viewPolicy).build();
  const call = { conversation, mode, turnId: turn?.turnId ?? 'explain' };
  return { assembled: new RequestAssembler().assemble(requestParts(sources, setup, view, call)), view };
}
