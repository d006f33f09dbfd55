import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./global.css";

import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { newQueries } from "./api/queries";
import { Router } from "./app/Router";
import { nonce } from "./nonce";
import { theme, variables } from "./theme";

// by this name libraries find it that make styles of their own
Object.assign(globalThis, { __webpack_nonce__: nonce() });

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" cssVariablesResolver={variables} getStyleNonce={nonce}>
      <QueryClientProvider client={newQueries()}>
        <Notifications position="bottom-right" />
        <Router />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
