import fc from 'fast-check';
import { expect, test } from 'vitest';
import { failedAnswer, splitFailedAnswer, splitMessage } from '../../../src/conversation/index.ts';

const failure = { code: 'MODEL_TIMEOUT', message: 'no answer\nwithin 30 s' };

test('the text and the failure of a failed answer are read back as they were written', () => {
  const texts = fc.oneof(
    fc.string(),
    fc.constantFrom('', '\n', 'a\n', 'LLM_ERROR {"code":"FALSE","message":""}'),
  );
  fc.assert(
    fc.property(texts, fc.string(), fc.string(), (text, code, message) => {
      expect(splitFailedAnswer(failedAnswer({ code, message }, text))).toEqual({
        text,
        failure: { code, message },
      });
    }),
  );
});

test.each([
  ['a notation in the middle of the text', 'I saw\nLLM_ERROR {"code":"X","message":""}\nin a log'],
  ['words after the notation', 'LLM_ERROR means failure'],
  ['a null', 'LLM_ERROR null'],
])('%s is text, not a failure', (_, content) => {
  expect(splitFailedAnswer(content)).toEqual({ text: content, failure: null });
});

test.each([
  ['that is not JSON', '{broken', { code: 'LLM_ERROR', message: '{broken' }],
  ['without a code', '{"message":"lost"}', { code: 'LLM_ERROR', message: 'lost' }],
])('an imported failure %s is shown as far as it is known', (_, json, expected) => {
  expect(splitFailedAnswer(`text\n\nLLM_ERROR ${json}`)).toEqual({ text: 'text', failure: expected });
});

test('an answer that quotes a failure and did not fail is shown whole', () => {
  const content = failedAnswer(failure, 'quoted');
  expect(splitMessage({ content, partType: 'text' })).toEqual({ text: content, failure: null });
  expect(splitMessage({ content, partType: 'error' })).toEqual({ text: 'quoted', failure });
  expect(splitMessage({ content: null, partType: 'text' })).toEqual({ text: '', failure: null });
});
