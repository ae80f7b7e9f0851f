/**
 * Creates a certificate authority and one certificate for all hosts at start, so that no private key is stored in a
 * repository.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { bitString, integer, objectId, octetString, sequence, set, TRUE, tagged, utcTime, utf8 } from "./der.ts";

export interface TlsIdentity {
  /** Certificate of the authority, as PEM. */
  readonly ca: string;
  /** Certificate of the server, as PEM. */
  readonly cert: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;
const VALID_DAYS = 7;

const OID = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

/** Makes a certificate for these hosts. It is valid for a week, and since yesterday, because clocks differ. */
export function makeIdentity(hosts: readonly string[], nowWallMs: number): TlsIdentity {
  const authority = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const server = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const validity = sequence(utcTime(nowWallMs - DAY_MS), utcTime(nowWallMs + VALID_DAYS * DAY_MS));
  const issuer = { name: distinguishedName("docstokg simulated internet"), key: authority.privateKey, validity };
  const authorityId = keyId(authority.publicKey);
  const ca = issue(issuer, issuer.name, authority.publicKey, [
    extension(OID.basicConstraints, sequence(TRUE), true),
    extension(OID.keyUsage, bitString(Buffer.of(0b0000_0100), 2), true), // keyCertSign
    extension(OID.subjectKeyId, octetString(authorityId)),
  ]);
  const cert = issue(issuer, distinguishedName(hosts[0] ?? "localhost"), server.publicKey, [
    extension(OID.basicConstraints, sequence(), true),
    extension(OID.keyUsage, bitString(Buffer.of(0b1000_0000), 7), true), // digitalSignature
    extension(OID.extendedKeyUsage, sequence(objectId(OID.serverAuth))),
    extension(OID.subjectAltName, sequence(...hosts.map(host => tagged(2, Buffer.from(host, "latin1"), true)))),
    extension(OID.authorityKeyId, sequence(tagged(0, authorityId, true))),
  ]);
  return { ca, cert, key: server.privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

interface Issuer {
  readonly name: Buffer;
  readonly key: KeyObject;
  readonly validity: Buffer;
}

function issue(issuer: Issuer, subject: Buffer, publicKey: KeyObject, extensions: readonly Buffer[]): string {
  const algorithm = sequence(objectId(OID.ecdsaWithSha256));
  const toBeSigned = sequence(
    tagged(0, integer(Buffer.of(2))), // version 3
    integer(Buffer.concat([Buffer.of(1), randomBytes(15)])),
    algorithm,
    issuer.name,
    issuer.validity,
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(3, sequence(...extensions)),
  );
  return pem(sequence(toBeSigned, algorithm, bitString(sign("sha256", toBeSigned, issuer.key))));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(set(sequence(objectId(OID.commonName), utf8(commonName))));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(objectId(id), ...(isCritical ? [TRUE] : []), octetString(value));
}

/** Any hash of the public key is a valid key id. */
function keyId(publicKey: KeyObject): Buffer {
  return createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);
}

function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
