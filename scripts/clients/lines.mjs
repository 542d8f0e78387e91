// What the clients in JavaScript share: a request a line, an answer a line (see
// script_test.go).
import {createInterface} from 'node:readline';

export const url = process.argv[2]; // of the API, with /v1 at its end

// serve answers each line of the input. Both functions return what is printed
// as JSON.
export async function serve(models, answer) {
  for await (const line of createInterface({input: process.stdin})) {
    const question = JSON.parse(line);
    console.log(JSON.stringify(question === 'models' ? await models() : await answer(question)));
  }
}

// refused is an error of the API as the client has read it.
export function refused(status, body) {
  return {error: {status, code: body?.code ?? '', param: body?.param ?? ''}};
}
