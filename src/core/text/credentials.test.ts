import assert from "node:assert/strict";
import { test } from "node:test";
import { isCredentialName, isPrivateName } from "./credentials.ts";

const CREDENTIALS = [
  // Standard headers
  ..."authorization Proxy-Authorization cookie set-cookie Cookie2 WWW-Authenticate DPoP".split(" "),
  // Headers of services
  ..."x-api-key X-ApiKey x-auth-token X-Auth-Key private-token x-client-secret x-session-id X-CSRF X-XSRF-Token".split(
    " ",
  ),
  ..."Ocp-Apim-Subscription-Key Crossref-Plus-API-Token X-ELS-APIKey X-ELS-Insttoken CF-Access-Client-Secret".split(
    " ",
  ),
  ..."x-amz-security-token x-goog-iap-jwt-assertion x-goog-api-key S2-API-KEY".split(" "),
  // Query parameters and form fields
  ..."key apikey api_key apiKey APIKEY ApiKey wskey access_key accessKeyId AWSAccessKeyId Key-Pair-Id key1 s2_api_key".split(
    " ",
  ),
  ..."token access_token accessToken refresh_token id_token insttoken instToken authtoken oauth_token token2".split(
    " ",
  ),
  ..."secret client_secret clientSecret clientsecret secretkey secrets shared-secret".split(" "),
  ..."auth oauth oauth2 authuser basicauth xauth authenticity_token authn auth_code authcode oauth_verifier".split(" "),
  ..."session sessionid session_id sessionId PHPSESSID JSESSIONID ASP.NET_SessionId sid connect.sid sessid".split(" "),
  ..."signature Signature sig hmac X-Amz-Signature X-Amz-Credential x-amz-date X-Goog-Signature".split(" "),
  ..."credential credentials password passwd pwd pass db_pass user_password passphrase passcode userpassword".split(
    " ",
  ),
  ..."jwt code device_code user_code access_code accesscode code_verifier ticket cas_ticket otp pw creds bearer csrf".split(
    " ",
  ),
  ..."SAMLResponse client_assertion user[password] auth[token] filter.api_key 26api_key".split(" "),
];

const ORDINARY = [
  // Headers
  ..."accept accept-encoding accept-language cache-control content-type user-agent host range if-none-match".split(" "),
  ..."idempotency-key surrogate-key x-request-id from referer origin etag x-author date".split(" "),
  // Query parameters
  ..."keyword keywords keywordSearch monkey turkey hotkey hockey keyboard sort_key sortKey sortkey primary_key".split(
    " ",
  ),
  ..."author authors author_id authorId first-author coauthor coauthors authority authored".split(" "),
  ..."country_code countryCode countrycode status_code language_code postcode zipcode error_code codes encode decoder".split(
    " ",
  ),
  ..."resumptionToken resumptiontoken page_token nextPageToken nextToken continuation_token tokens max_tokens tokenizer".split(
    " ",
  ),
  ..."secretary secretariat sessions obsession side inside residence sigma signed design assign".split(" "),
  ..."compass passage pathway passenger bypass hash ticketing tickets jwks".split(" "),
  ..."q query filter id doi select page cursor per-page format state scope year title x-ratelimit-limit x".split(" "),
  "",
  "-",
  "1234",
];

test("names of credentials are recognised in any case and with any separator", () => {
  assert.deepEqual(
    CREDENTIALS.filter(name => !isCredentialName(name)),
    [],
  );
  for (const vary of [(name: string) => name.toUpperCase(), (name: string) => name.toLowerCase()]) {
    const lost = CREDENTIALS.map(vary).filter(name => !isCredentialName(name));
    assert.deepEqual(lost, []);
  }
  const separated = CREDENTIALS.flatMap(name => [name.replaceAll("_", "-"), name.replaceAll("-", "_")]);
  assert.deepEqual(
    separated.filter(name => !isCredentialName(name)),
    [],
  );
});

test("ordinary names that resemble those of credentials are not credentials", () => {
  assert.deepEqual(ORDINARY.filter(isCredentialName), []);
});

test("email addresses are private, but are no credentials", () => {
  const names = ["email", "mailto", "mail", "e-mail", "user_email", "contactEmail"];
  assert.deepEqual(names.filter(isCredentialName), []);
  assert.deepEqual(names.filter(isPrivateName), names);
  assert.deepEqual(CREDENTIALS.filter(isPrivateName), CREDENTIALS);
  assert.deepEqual([...ORDINARY, "mailing", "emailed"].filter(isPrivateName), []);
});
