import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { readEvents } from '../support/event-source.ts';
import { posting } from '../support/http.ts';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { startProject } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

describe.each(hasLongTests ? ['file', 'jetstream'] : ['file'])(
  'live text of a remote agent, with store %s',
  (store) => {
    let program: ParleyClient;
    /** Lets the agent send the rest. */
    let finish = () => {};

    const project = perTest(() =>
      startProject(
        {
          nats: {},
          agents: { critic: '---\nname: Carl\nruntime: bus\n---\nYou judge.' },
          script: [{ reply: { text: 'Noted.' } }],
          http: true,
        },
        '--store',
        store,
      ),
    );
    beforeEach(async () => {
      program = await project.connect();
      await program.agent('critic', async (turn) => {
        turn.write('Not ');
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        turn.write('bad.');
        return undefined;
      });
    });
    afterEach(async () => {
      finish();
      await program?.close();
    });

    it('live text of a remote agent is streamed once as server-sent events before the turn ends', async () => {
      await program.request('phase', { conversation: 'demo', phase: 'plan', publisher: 'alice' });
      const reader = await readEvents(`${project.http}/api/conversations/demo/events`);
      await program.post({ conversation: 'demo', content: 'How is it?', publisher: 'alice' });
      const live = () =>
        reader.events
          .filter(({ event }) => event === 'live')
          .map(({ data }) => (data as { delta: string }).delta);
      await expect.poll(live).toEqual(['Not ']);
      finish();
      const types = () => reader.events.map(({ data }) => (data as { type?: string }).type);
      await expect.poll(types).toContain('turn-ended');
      expect(live()).toEqual(['Not ', 'bad.']);
      reader.close();
    });

    itLong(
      'live text of a remote agent is streamed once to a client of `/v1` before the turn ends',
      async () => {
        const response = await fetch(
          `${project.http}/v1/chat/completions`,
          posting({
            model: 'critic',
            stream: true,
            messages: [{ role: 'user', content: 'How is it?' }],
          }),
        );
        let text = '';
        const reading = (async () => {
          for await (const bytes of response.body ?? []) text += new TextDecoder().decode(bytes);
        })();
        const content = () => [...text.matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part).join('');
        reading.catch(() => undefined); // awaited below, unless the check before that fails
        await expect.poll(content).toBe('Not ');
        finish();
        await reading;
        expect(content()).toBe('Not bad.');
      },
    );
  },
);
