import { describe, expect, it } from 'vitest';
import { followUntil, turnsEnded } from '../support/log.ts';
import { modelAt, sharedProject } from '../support/project.ts';

const SECRET = 'very-secret-value';
/** In two parts, since it is a reference and not a template. */
const REFERENCE = '$' + '{GATEWAY_KEY}';

describe('parameters of requests', () => {
  const parameters = {
    ...{ temperature: 0.2, topP: 0.9, reasoningEffort: 'low', stop: 'END', seed: 7 },
    extraBody: { user: 'team' },
    headers: { 'x-team': 'blue', 'x-key': REFERENCE },
  };
  const modelsAt = (url: string) => ({
    default: { ...modelAt(url), ...parameters },
    whole: { ...modelAt(url), ...parameters, stream: false },
    small: { ...modelAt(url), ...parameters, contextTokens: 2_000, maxOutputTokens: 500 },
  });
  const agent = (name: string, more: string) =>
    `---\nname: ${name}\nmodel: ${name === 'Pam' ? 'default' : name.toLowerCase()}\n${more}---\nYou plan.`;
  const project = sharedProject({
    env: { GATEWAY_KEY: SECRET },
    settings: (url) => ({ models: modelsAt(url) }),
    model: ({ json }) =>
      JSON.stringify(json.messages).includes('fail')
        ? {
            status: 400,
            body: { error: { message: `temperature is not supported; your x-key is ${SECRET}` } },
          }
        : { text: 'Here it is.' },
    agents: {
      pm: agent('Pam', 'parameters: { temperature: 1, maxOutputTokens: 100, headers: { x-team: red } }\n'),
      whole: agent('Whole', ''),
      small: agent(
        'Small',
        'context: { summaryModel: small }\nparameters: { temperature: 1, extraBody: { user: agent } }\n',
      ),
    },
  });
  const { nats, provider, client } = project;

  async function ask(conversation: string, to: string, content: string, turns = 1) {
    const before = provider.requests.length;
    await client.post({ conversation, publisher: 'alice', content, to: [to] });
    const entries = await followUntil(client, conversation, turnsEnded(turns));
    return { entries, requests: provider.requests.slice(before) };
  }

  it('the provider gets them in a streamed request, those of the agent before those of the model', async () => {
    const { requests } = await ask('streamed', 'pm', 'hello');
    expect(requests[0]?.json).toMatchObject({
      ...{ stream: true, temperature: 1, max_tokens: 100, top_p: 0.9, reasoning_effort: 'low' },
      ...{ stop: 'END', seed: 7, user: 'team' },
    });
    expect(requests[0]?.headers).toMatchObject({ 'x-team': 'red', 'x-key': SECRET });
    expect(requests[0]?.headers.authorization).toBe('Bearer sk-test');
  });

  it('the provider gets them in a request without a stream', async () => {
    const { requests } = await ask('whole', 'whole', 'hello');
    expect(requests[0]?.json).toMatchObject({ stream: false, temperature: 0.2, user: 'team' });
    expect(requests[0]?.headers).toMatchObject({ 'x-team': 'blue', 'x-key': SECRET });
  });

  it('the request of a summary has those of the model alone', async () => {
    const long = 'word '.repeat(300);
    const requests = [];
    for (const turn of [1, 2, 3, 4]) {
      requests.push(...(await ask('summed-up', 'small', `${turn} ${long}`, turn)).requests);
    }
    const ofAgent = requests.filter(({ json }) => 'user' in json && json.user === 'agent');
    expect(ofAgent.length).toBe(4);
    const summaries = requests.filter((request) => !ofAgent.includes(request));
    expect(summaries.length).toBeGreaterThan(0);
    for (const { json, headers } of summaries) {
      expect(json).toMatchObject({ user: 'team', temperature: 0.2 });
      expect(headers['x-key']).toBe(SECRET);
    }
  });

  it('`explain` and `agents` show them and hide the values of headers', async () => {
    const { entries } = await ask('shown', 'pm', 'hello');
    const at = entries.findLast((entry) => entry.type === 'message' && entry.role === 'assistant')?.index;
    const { report } = await client.request('view', { conversation: 'shown', agent: 'pm', at });
    expect(report).toMatchObject({
      sent: true,
      parameters: { temperature: 1, max_tokens: 100, user: 'team' },
      headers: ['x-team', 'x-key'],
    });
    const explained = await project.parley('explain', 'shown', '--agent', 'pm', '--nats', nats.url);
    expect(explained.stdout).toContain('temperature 1, top_p 0.9');
    expect(explained.stdout.replaceAll(/\s+/g, ' ')).toContain('x-team, x-key (values hidden)');
    const agents = await project.parley('agents', '--nats', nats.url);
    expect(agents.stdout.replaceAll(/\s+/g, ' ')).toContain(
      'default (max_tokens 100, temperature 1, top_p 0.9',
    );
    for (const { stdout } of [explained, agents]) expect(stdout).not.toContain(SECRET);
  });

  it('a refusal of the provider is shown without the secret that it quotes', async () => {
    const { entries } = await ask('refused', 'pm', 'fail please');
    const text = JSON.stringify(entries);
    expect(text).toContain('temperature is not supported');
    expect(text).not.toContain(SECRET);
    expect(text).toContain('your x-key is [secret]');
  });
});
