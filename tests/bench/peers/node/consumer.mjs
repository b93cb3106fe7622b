// Peer: an expert's Node consumer. amqplib, an undici pool as wide as the prefetch, better-sqlite3 with group commit
// (what finished in one turn of the event loop goes into one transaction), ack after commit.
import amqp from 'amqplib';
import { Pool } from 'undici';
import Database from 'better-sqlite3';

const option = (name, otherwise) => {
  const at = process.argv.indexOf('--' + name);
  return at < 0 ? otherwise : process.argv[at + 1];
};
const prefetch = +option('prefetch', 5);
const idle = +option('until-idle', 0);
const end = performance.now() + 1000 * +option('max-seconds', 60);

const db = new Database(process.env.EAI_MQ_DB, { timeout: 10000 });
db.pragma('journal_mode = WAL');
db.pragma('synchronous = FULL');
db.exec('CREATE TABLE IF NOT EXISTS processed(message_id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID');
const find = db.prepare('SELECT 1 FROM processed WHERE message_id = ?');
const insert = db.prepare('INSERT OR IGNORE INTO processed VALUES (?, ?)');
const record = db.transaction(batch => {
  for (const one of batch) if (one.status === 201) insert.run(one.message.properties.messageId, Date.now() / 1000);
});

const pool = new Pool(option('claim'), { connections: prefetch, pipelining: 1, headersTimeout: 10000 });
const connection = await amqp.connect(process.env.EAI_AMQP_URL);
const channel = await connection.createChannel();
await channel.prefetch(prefetch);

let count = 0, first = 0, last = 0, finished = [];
const settleFinished = () => {
  const batch = finished;
  finished = [];
  record.immediate(batch);
  for (const { message, status } of batch) {
    if (status === 201) channel.ack(message);
    else channel.nack(message, false, status !== 422 && !message.fields.redelivered);
  }
  count += batch.length;
  last = performance.now();
};

await channel.consume('claim.in', async message => {
  first ||= performance.now();
  if (find.get(message.properties.messageId)) return channel.ack(message);
  let status = 0;
  try {
    const answer = await pool.request({
      path: '/v1/claims', method: 'POST', body: message.content,
      headers: { 'content-type': 'application/json', 'idempotency-key': `"${message.properties.messageId}"` },
    });
    await answer.body.dump();
    status = answer.statusCode;
  } catch { /* status 0: one more try */ }
  if (finished.push({ message, status }) === 1) setImmediate(settleFinished);
});

setInterval(async () => {
  const now = performance.now();
  if (now < end && !(idle && count && now - last > idle * 1000)) return;
  console.log(`${count} in ${((last - first) / 1000).toFixed(6)} s`);
  await connection.close();
  process.exit(0);
}, 100);
