/**
 * Loaded with `--import` into a worker: connections to the ports of the store go through the proxy of this process.
 * CHAOS_ROUTES maps a port to the port of its proxy, as JSON. Sentinels and cluster nodes name the real ports of their
 * servers, so the address of the store alone is not enough.
 */
import net from "node:net";

const routes: Readonly<Record<string, number>> = JSON.parse(process.env["CHAOS_ROUTES"] ?? "{}");
const connect = net.createConnection as (options: net.NetConnectOpts, onConnect?: () => void) => net.Socket;

// pg connects its sockets itself.
const { connect: connectSocket } = net.Socket.prototype;
net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]) {
  const [port] = args;
  if (typeof port === "number") args[0] = routes[port] ?? port;
  return Reflect.apply(connectSocket, this, args);
} as typeof connectSocket;

net.createConnection = ((options: net.TcpNetConnectOpts, onConnect?: () => void) =>
  connect({ ...options, port: routes[options.port] ?? options.port }, onConnect)) as typeof net.createConnection;
