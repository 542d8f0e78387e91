// Server-sent events, out of pieces of text that break anywhere.

export class EventReader {
  #rest = '';

  /** read returns the data of the events that piece completes. */
  read(piece) {
    const blocks = (this.#rest + piece).replaceAll('\r\n', '\n').split('\n\n');
    this.#rest = blocks.pop();
    return blocks.map(dataOf).filter((data) => data !== '');
  }
}

// dataOf returns the data lines of an event; a comment has none.
function dataOf(block) {
  return block.split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
    .join('\n');
}
