// A socket.io server for comparison: each event of a POST is broadcast to all sockets. It stores
// nothing; a client that comes back soon gets what it missed from memory, as the hub does from its
// log. Run as `node socketio.mjs FOLDER PORT`; the folder has socket.io in its node_modules.
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [folder, port] = process.argv.slice(2);
const { Server } = createRequire(`${folder}/`)("socket.io");

const http = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    if (parts.length) {
      const found = JSON.parse(Buffer.concat(parts));
      for (const event of Array.isArray(found) ? found : [found]) io.emit("event", event);
    }
    const body = "{}";
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
    response.end(body);
  });
});
// the load generator knows one path
http.on("upgrade", (request) => {
  request.url = "/socket.io/?EIO=4&transport=websocket";
});
const io = new Server(http, {
  transports: ["websocket"],
  connectionStateRecovery: {},
  pingInterval: 600_000,
  serveClient: false,
});
io.on("connection", (socket) => socket.emit("ready", { op: "listening" }));
http.listen(Number(port), "127.0.0.1");
