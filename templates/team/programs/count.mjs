// What the agent `counter` answers.
export function count(text) {
  const words = text.split(/\s+/).filter((word) => /\w/.test(word) && !word.startsWith('@')).length;
  const sentences = text.split(/[.!?]+(?:\s|$)/).filter((sentence) => /\w/.test(sentence)).length;
  return `${words} words in ${sentences} ${sentences === 1 ? 'sentence' : 'sentences'}.`;
}
