/**
 * Tools that are functions in the process of the daemon: of the program which contains it, or of files of the configuration.
 *
 *   tool      `tool({ name, input, run })`: one tool, its schema and its results; those of one daemon; the files `config/tools/*.ts`
 *
 * Policy, approvals, audit and crash rules are those of every other tool: nothing here decides whether a call runs.
 */
export {
  createInProcessTools,
  type InProcessTool,
  loadToolFiles,
  outcomeOf,
  type ToolCall,
  type ToolSpec,
  tool,
} from './tool.ts';
