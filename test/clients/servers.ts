/**
 * Starts one strict server for each client, prints their origins as JSON, and when stdin ends how many requests each of
 * them has received and rejected.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { startStrictServer } from "../../src/testing/strict-server.ts";

const S3_BUCKETS = '<?xml version="1.0"?><ListAllMyBucketsResult><Buckets></Buckets></ListAllMyBucketsResult>';
const GIT_REFS =
  "001e# service=git-upload-pack\n0000" + "003f0123456789012345678901234567890123456789 refs/heads/main\0\n" + "0000";

function answer({ url = "", method, headers }: IncomingMessage, response: ServerResponse): void {
  const send = (type: string, body: string) => response.writeHead(200, { "content-type": type }).end(body);
  if (url.includes("git-upload-pack")) send("application/x-git-upload-pack-advertisement", GIT_REFS);
  else if (url.endsWith(".ttl")) send("text/turtle", "<http://a.example/s> <http://a.example/p> 1 .\n");
  else if (String(headers.authorization).startsWith("AWS4")) send("application/xml", S3_BUCKETS);
  else if (method === "POST") send("application/json", '{"data":{"ok":true}}');
  else send("application/json", '{"ok":true,"data":[{"ok":true}]}');
}

const [count = "1", rate = "5/SECOND"] = process.argv.slice(2);
const servers = await Promise.all(Array.from({ length: Number(count) }, () => startStrictServer({ rate, answer })));
process.stdout.write(`${JSON.stringify(servers.map(({ origin }) => origin))}\n`);
for await (const _ of process.stdin);
const counts = servers.map(({ arrivalsMs, rejected }) => ({ received: arrivalsMs.length, rejected }));
process.stdout.write(`${JSON.stringify(counts)}\n`);
process.exit();
