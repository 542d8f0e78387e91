// Numbers as people read them.

const whole = new Intl.NumberFormat('en');
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export const count = (n) => whole.format(Math.round(n));

export const tokens = (n) => `${count(n)} ${n === 1 ? 'token' : 'tokens'}`;

export const rate = (perSecond) => `${perSecond < 100 ? tenth.format(perSecond) : count(perSecond)} tokens/s`;

export function bytes(n) {
  if (n >= 1e9) return `${tenth.format(n / 1e9)} GB`;
  return n >= 1e6 ? `${tenth.format(n / 1e6)} MB` : `${tenth.format(n / 1e3)} kB`;
}

export function seconds(s) {
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${tenth.format(s)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export const day = (time) => new Date(time).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });

export const clock = (time) => new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
