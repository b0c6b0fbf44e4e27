import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client';
import { image, pdf, words } from './expected.mjs';

/** The client of `@a2a-js/sdk`, from the card of an agent. */

export const client = ({ url, check, say }) => {
  const part = (content, more = {}) => ({
    content,
    metadata: undefined,
    filename: '',
    mediaType: '',
    ...more,
  });
  const text = (value) => part({ $case: 'text', value });
  let made = 0;
  const message = (parts, more = {}) => ({
    ...{ tenant: '', configuration: undefined, metadata: undefined },
    message: {
      ...{ messageId: `m${Date.now()}-${++made}`, contextId: '', taskId: '', role: Role.ROLE_USER, parts },
      ...{ metadata: undefined, extensions: [], referenceTaskIds: [], ...more },
    },
  });
  const open = (agent = 'pm') =>
    new ClientFactory(ClientFactoryOptions.default).createFromUrl(
      `${url}/a2a/${agent}/.well-known/agent-card.json`,
      '',
    );
  const ask = async (parts, more) => (await open()).sendMessage(message(parts, more));
  const wordsOf = (task) =>
    (task.artifacts[0]?.parts ?? [])
      .map(({ content }) => (content.$case === 'text' ? content.value : ''))
      .join('');
  const raw = ({ bytes, mediaType }, filename) =>
    part({ $case: 'raw', value: bytes }, { mediaType, filename });
  return {
    text: async () => check(wordsOf(await ask([text(say('hello'))])), words.helloAnswer),
    stream: async () => {
      let streamed = '';
      const stream = (await open()).sendMessageStream(message([text(say('hello'))]));
      for await (const { payload } of stream)
        if (payload?.$case === 'artifactUpdate') streamed += wordsOf({ artifacts: [payload.value.artifact] });
      check(streamed, words.helloAnswer);
    },
    'client tools': 'n/a',
    structured: async () => {
      const task = await (await open('typed')).sendMessage(message([text(say('typed'))]));
      const found = task.artifacts[0].parts.find(({ content }) => content.$case === 'data');
      check(found.content.value.degrees, 4);
    },
    picture: async () => check(wordsOf(await ask([text(say('see')), raw(image, 'one.png')])), image.answer),
    file: async () => check(wordsOf(await ask([text(say('see')), raw(pdf, 'plan.pdf')])), pdf.answer),
    abort: async () => {
      const own = await open();
      for await (const { payload } of own.sendMessageStream(message([text(say('slow'))]))) {
        if (payload?.$case !== 'task') continue;
        const ended = await own.cancelTask({ id: payload.value.id, tenant: '', metadata: undefined });
        check(ended.status.state, TaskState.TASK_STATE_CANCELED);
        break;
      }
    },
    error: async () => check((await ask([text(say('fail'))])).status.state, TaskState.TASK_STATE_FAILED),
    usage: 'n/a',
    'edited history': 'n/a',
  };
};
