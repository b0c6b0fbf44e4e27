/** What providers answer to a request that exceeds the window of the model: status and body, as reported by their users. */
const REPORTED = `
OpenAI | 400 | {"error":{"code":"context_length_exceeded","message":"x"}}
OpenAI, of a longer text | 400 | {"error":{"message":"This model's maximum context length is 8192 tokens. Please reduce the length."}}
OpenAI, newer models | 400 | {"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error"}}
OpenAI, one message | 400 | {"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.","type":"invalid_request_error","param":"messages[1].content","code":"string_above_max_length"}}
OpenAI, number of messages | 400 | {"error":{"message":"Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2100 instead.","type":"invalid_request_error","param":"messages","code":"array_above_max_length"}}
Azure | 400 | {"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130123 tokens (129000 in the messages, 1123 in the functions). Please reduce the length of the messages or functions.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}
Anthropic | 400 | {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}
Anthropic, with the answer | 400 | {"type":"error","error":{"type":"invalid_request_error","message":"input length and \`max_tokens\` exceed context limit: 187254 + 20000 > 200000, decrease input length or \`max_tokens\` and try again"}}
Anthropic, in bytes | 413 | {"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}
Gemini | 400 | [{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]
Vertex AI | 400 | {"error":{"code":400,"message":"Unable to submit request because the input token count is 34021 but model only supports up to 32768. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}
DashScope (Qwen) | 400 | {"error":{"code":"invalid_parameter_error","param":null,"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]","type":"invalid_request_error"}}
DashScope, older | 400 | {"code":"InvalidParameter","message":"Range of input length should be [1, 6000]","request_id":"x"}
DashScope, all messages | 400 | {"error":{"message":"<400> InternalError.Algo.InvalidParameter: Total message token length exceed model limit"}}
xAI | 400 | {"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}
Copilot | 400 | {"error":{"message":"prompt token count of 391491 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}
Z.ai | 400 | {"error":{"code":"1261","message":"Prompt too long"}}
Z.ai, by the answer | 400 | {"error":{"code":"1210","message":"tokens in request more than max tokens allowed"}}
Zhipu | 400 | {"error":{"code":"1261","message":"Prompt 超长"}}
Mistral | 400 | {"object":"error","message":"Prompt contains 70000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}
Mistral, older | 422 | {"detail":"Prompt contains 70000 tokens, too many tokens, model has a context window of 65536"}
Groq | 400 | {"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}
Groq, more than a minute allows | 413 | {"error":{"message":"Request too large for model \`x\` in organization \`org\` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}
DeepSeek | 400 | {"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 140192 tokens (136096 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}
Moonshot | 400 | {"error":{"message":"Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)","type":"invalid_request_error"}}
MiniMax | 400 | {"error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}
vLLM | 400 | {"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 6000 input tokens (4096 > 8192 - 6000).","type":"BadRequestError","code":400}
vLLM, the prompt alone | 400 | {"error":{"message":"The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that \`max_model_len\` is no smaller than the number of text tokens.","type":"BadRequestError","code":400}}
SGLang | 400 | {"object":"error","message":"The input (40000 tokens) is longer than the model's context length (32768 tokens).","type":"BadRequest","code":400}
llama.cpp | 400 | {"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}
llama.cpp, as its own fault | 500 | {"error":{"code":500,"message":"Input prompt is too long (5000 tokens)","type":"server_error"}}
Ollama | 400 | {"error":{"message":"prompt too long; exceeded max context length by 812 tokens","type":"invalid_request_error"}}
LM Studio | 400 | "Trying to keep the first 5000 tokens when context length is only 4096"
LM Studio, older | 400 | {"error":"The number of tokens to keep from the initial prompt is greater than the context length"}
LiteLLM | 400 | {"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - ${'…'.repeat(400)}","type":null,"param":null,"code":"400"}}
OpenRouter | 400 | {"error":{"message":"This endpoint's maximum context length is 262144 tokens. However, you requested about 300000 tokens (299000 of text input, 1000 of tool input).","code":400,"metadata":{"provider_name":null}}}
OpenRouter, in the words of the provider | 400 | {"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"error\\":{\\"message\\":\\"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.\\",\\"code\\":400}}","provider_name":"Poolside"}}}
Bedrock | 413 | {"message":"Input is too long for requested model."}
Bedrock, by number | 400 | {"message":"The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length."}
Cohere | 400 | {"message":"too many tokens: size limit exceeded by 19296 tokens. Try using shorter or fewer inputs. The limit for this model is 132000 tokens."}
Together | 422 | {"error":{"message":"Input validation error: \`inputs\` tokens + \`max_new_tokens\` must be <= 8193. Given: 10000 \`inputs\` tokens and 512 \`max_new_tokens\`","type":"invalid_request_error"}}
Fireworks | 400 | {"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 140000, model maximum context length: 131071"}}
SiliconFlow | 400 | {"code":20015,"message":"length of prompt_tokens (140000) must be less than max_seq_len (131072)."}
Cloudflare | 413 | {"errors":[{"message":"AiError: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8000)."}]}
Qianfan | 400 | {"error":{"code":"tokens_too_long","message":"Prompt tokens too long"}}
Volcengine | 400 | {"error":{"code":"InvalidParameter","message":"Input length 240000 exceeds the maximum length 229376"}}
`;

export const TOO_LONG = reported(REPORTED);

/** Lines of `provider | status | body`. */
export function reported(lines: string) {
  return lines
    .trim()
    .split('\n')
    .map((line): readonly [provider: string, status: number, body: unknown] => {
      const [provider = '', status, ...body] = line.split(' | ');
      return [provider.trim(), Number(status), JSON.parse(body.join(' | '))];
    });
}
