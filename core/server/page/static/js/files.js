// Text out of files.

const largest = 4e6; // bytes; the server takes messages of 16 MB

/** readFiles returns the files that are plain text, and the names of the others. */
export async function readFiles(files) {
  const taken = [];
  const refused = [];
  for (const file of files) {
    const text = file.size <= largest ? textOf(await file.arrayBuffer()) : null;
    if (text === null) refused.push(file.name);
    else taken.push({ name: file.name, text });
  }
  return { taken, refused };
}

// textOf decodes UTF-8, and UTF-16 that says so; null is something else.
function textOf(buffer) {
  const [a, b] = new Uint8Array(buffer, 0, Math.min(2, buffer.byteLength));
  const label = a === 0xff && b === 0xfe ? 'utf-16le' : a === 0xfe && b === 0xff ? 'utf-16be' : 'utf-8';
  try {
    const text = new TextDecoder(label, { fatal: true }).decode(buffer);
    return text.includes('\0') ? null : text.replaceAll('\r\n', '\n');
  } catch {
    return null;
  }
}
