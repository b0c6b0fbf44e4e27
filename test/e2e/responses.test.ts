import { describe, expect, it } from 'vitest';
import { checkLog } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';
import { type Answering, answering } from '../support/responses-provider.ts';

const PLAN = { call: 'set_phase', arguments: '{"phase":"plan","reason":"to plan"}' };
const AGENT = '---\nname: pm\ndescription: works\ntools: [set_phase]\n---\nWORK';

/** Calls a tool once for each post that asks for a plan. */
const planner: Answering = ({ input }) => {
  const last = input.at(-1);
  const isAsked = last && 'role' in last && JSON.stringify(last.content).includes('plan it');
  return isAsked
    ? {
        output: [
          { reasoning: ['They want a plan.', 'So the phase.'] },
          { text: 'First the phase.', phase: 'commentary' },
          PLAN,
        ],
      }
    : { output: [{ reasoning: [] }, { text: 'Here it is.', phase: 'final_answer' }] };
};

describe('a daemon whose model speaks the Responses API', () => {
  const refusals: string[] = [];
  const answer = answering(planner, refusals);
  const project = sharedProject({
    settings: (url) => ({
      models: {
        default: {
          provider: 'responses',
          baseURL: url,
          apiKey: 'sk-test',
          model: 'gpt-5',
          reasoningEffort: 'high',
        },
        other: { provider: 'openai', baseURL: url, apiKey: 'sk-test', model: 'other' },
      },
      defaultAgent: 'pm',
    }),
    model: (request, count) =>
      request.path.endsWith('/chat/completions') ? { text: 'As I see it.' } : answer(request, count),
    agents: { pm: AGENT, dev: AGENT.replace('---\nname: pm', '---\nmodel: other\nname: dev') },
  });

  it('the command line shows an answer with reasoning, a tool call and its result; both return to the model in its order', async () => {
    const told = await project.parley('say', 'demo', 'plan it', '--wait', '--nats', project.nats.url);
    expect(told.stdout).toContain('Here it is.');
    expect(refusals).toEqual([]);
    const [first, second] = project.provider.requests.map(
      ({ json }) => json as unknown as Record<string, unknown>,
    );
    expect(first).toMatchObject({ store: false, reasoning: { effort: 'high', summary: 'auto' } });
    expect(first?.instructions).toContain('WORK');
    expect([second?.input].flat().slice(-4)).toMatchObject([
      { type: 'reasoning', id: 'rs_0_0', encrypted_content: 'enc:gpt-5:rs_0_0' },
      {
        type: 'message',
        id: 'msg_0_1__rs_0_0',
        phase: 'commentary',
        content: [{ text: 'First the phase.' }],
      },
      { type: 'function_call', id: 'fc_0_2__rs_0_0', name: 'set_phase' },
      { type: 'function_call_output' },
    ]);
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });
});
