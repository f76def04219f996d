// An identity provider for tests: a real one (oidc-provider), with claims shaped like Keycloak's. Nothing that ships
// needs it.
//
//     node provider.mjs KEY CERTIFICATE [SECONDS]     prints its address; access tokens live SECONDS (default 300)
//
// POST /test/rotate        a new signing key; the old one still verifies
// POST /test/retire        a new signing key; the old ones are gone
// GET  /test/fetches       how often the keys were read
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { randomBytes, generateKeyPairSync } from 'node:crypto';

const [keyFile, certificateFile, seconds = '300'] = process.argv.slice(2);
// Installed below the build, beside which this file does not lie.
const { default: Provider } = await import(`${process.env.OIDC_MODULES}/oidc-provider/lib/index.js`);

// Whoever types a name here is that person; a password is not asked for.
const people = {
  ada: { groups: ['/fleet/platform-admins'], roles: ['platform-admin'] },
  tim: { groups: ['/acme'], roles: ['tenant-user'] },
  eve: { groups: ['/acme-evil'], roles: [] },
};

function newKey(kty) {
  const { privateKey } = kty === 'RSA'
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = privateKey.export({ format: 'jwk' });
  return { ...jwk, use: 'sig', alg: kty === 'RSA' ? 'RS256' : 'ES256', kid: randomBytes(6).toString('hex') };
}

const cookieKey = randomBytes(16).toString('hex');
let keys = [newKey('RSA'), newKey('EC')];
let issuer;
let answer;
let fetches = 0;

function configured() {
  const provider = new Provider(issuer, {
    jwks: { keys },
    clients: [
      {
        client_id: 'bulkhead-cli',
        client_name: 'bulkhead-cli',
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
        response_types: [],
        redirect_uris: [],
      },
      {
        client_id: 'bulkhead-console',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        response_types: ['code'],
        redirect_uris: ['https://console.example/callback'],
      },
    ],
    cookies: { keys: [cookieKey] },
    pkce: { required: () => true, methods: ['S256'] },
    findAccount: (ctx, id) => (people[id] ? { accountId: id, claims: () => ({ sub: id }) } : undefined),
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    extraTokenClaims: (ctx, token) => ({
      typ: 'Bearer',
      azp: token.clientId,
      preferred_username: token.accountId,
      groups: people[token.accountId]?.groups ?? [],
      realm_access: { roles: ['offline_access'] },
      resource_access: { bulkhead: { roles: people[token.accountId]?.roles ?? [] }, account: { roles: ['platform-admin'] } },
    }),
    features: {
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:bulkhead',
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: '',
          audience: 'bulkhead',
          accessTokenFormat: 'jwt',
          accessTokenTTL: Number(seconds),
          jwt: { sign: { alg: keys[0].alg } },
        }),
      },
    },
    ttl: { DeviceCode: 600, Grant: 3600, Interaction: 600, Session: 3600, RefreshToken: 3600, IdToken: 300, AuthorizationCode: 60 },
  });
  provider.on('server_error', (ctx, error) => console.error(error));
  return provider.callback();
}

const server = createServer({ key: readFileSync(keyFile), cert: readFileSync(certificateFile) }, (request, response) => {
  const path = request.url.split('?')[0];
  if (request.method === 'POST' && (path === '/test/rotate' || path === '/test/retire')) {
    keys = [newKey('EC'), newKey('RSA'), ...(path === '/test/rotate' ? keys : [])];
    answer = configured();
    response.end(`${keys[0].kid}\n`);
    return;
  }
  if (path === '/test/fetches') {
    response.end(`${fetches}\n`);
    return;
  }
  if (path === '/jwks') fetches += 1;
  answer(request, response);
});
server.listen(Number(process.env.OIDC_PORT ?? 0), '127.0.0.1', () => {
  issuer = `https://127.0.0.1:${server.address().port}`;
  answer = configured();
  console.log(`\n${issuer}`);
});
process.stdin.on('end', () => process.exit(0)); // whoever started us is gone
process.stdin.resume();
