/**
 * Tools: adapters of the port `src/agents/tool-port.ts`.
 *
 * toolbox.ts       combines several toolboxes, applies the configured risk; a toolbox of tools of this process; one run with a
 *                  deadline, which always ends with an outcome
 * processes.ts     starts programs that cannot see the daemon's data; ends process groups, also when the daemon is killed
 * builtin/         the tools that Parley ships: files, shell, recall
 * in-process/      functions of the program that contains the daemon, and of the files `config/tools/*.ts`
 * mcp/             tools of MCP servers (imported directly: it is loaded only if servers are configured)
 *
 * Texts for models (descriptions, results, failures) are part of requests: a change alters their hashes.
 */
export { type Conversations, createBuiltInTools, type StoredBlobs } from './builtin/index.ts';
export {
  createInProcessTools,
  type InProcessTool,
  loadToolFiles,
  outcomeOf as toolOutcome,
  type ToolCall,
  type ToolSpec,
  tool,
} from './in-process/index.ts';
export { asIs, type Enclose, hideFolder, hidingFault } from './processes.ts';
export { createToolbox, failed, LONGEST_CALL_MS } from './toolbox.ts';
