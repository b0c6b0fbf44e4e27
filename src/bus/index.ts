export { type Account, ANSWER_PATIENCE, accountsOf } from './accounts.ts';
export { decodeRequest, statusOf } from './api.ts';
export { MAX_ORIGINAL_BYTES, type Repost, repostOf } from './dead-letter.ts';
export {
  type AnswerOf,
  CONTRACT,
  CONVERSATION_VERBS,
  isVerb,
  PUBLISHER_VERBS,
  parseRequest,
  REPEATABLE_VERBS,
  type RequestOf,
  VERBS,
  type Verb,
} from './contract.ts';
export type { BusLog } from './log.ts';
export {
  handlePeerMessage,
  invalidAnswer,
  type PeerAnswerOf,
  type PeerHandlers,
  type PeerList,
  type PeerRequestOf,
  type PeerVerb,
  readPeerAnswer,
  readPeerList,
  type SharedList,
} from './peer-contract.ts';
export { inboxPrefixOf, type Permissions, permissionsOf, type User } from './permissions.ts';
export * from './port.ts';
export {
  authorOf,
  type DecodedPost,
  decodePost,
  type EncodedPost,
  metaFault,
  type Post,
  quickIdOf,
} from './post.ts';
export {
  type AgentMessage,
  decodeAcceptance,
  decodeAgentMessage,
  decodeOffer,
  decodeResults,
  isAbort,
  type OfferBody,
  type OfferedTool,
  type ToolResult,
  type ToolResults,
  type TurnOffer,
} from './remote-turns.ts';
export type { Owner } from './settled.ts';
export type * from './sharing.ts';
export { ANY, createSubjects, type Subjects } from './subjects.ts';
