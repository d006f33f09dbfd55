import { createBrowserRouter, Navigate } from "react-router";
import { RouterProvider } from "react-router/dom";

import { pathIn } from "../api/zone";
import { Gate } from "./Gate";
import { Missing } from "../parts/Missing";
import { lastZone } from "./lastZone";

// One file per page, so that the first one is small.
const pages = [
  { path: "overview", lazy: async () => ({ Component: (await import("../pages/OverviewPage")).OverviewPage }) },
  { path: "live", lazy: async () => ({ Component: (await import("../pages/LivePage")).LivePage }) },
  { path: "streams", lazy: async () => ({ Component: (await import("../pages/StreamsPage")).StreamsPage }) },
  { path: "streams/:stream/:tab?", lazy: async () => ({ Component: (await import("../pages/StreamPage")).StreamPage }) },
  { path: "types", lazy: async () => ({ Component: (await import("../pages/TypesPage")).TypesPage }) },
  { path: "types/:domain/:type/:version?", lazy: async () => ({ Component: (await import("../pages/TypePage")).TypePage }) },
  { path: "applications", lazy: async () => ({ Component: (await import("../pages/ApplicationsPage")).ApplicationsPage }) },
  { path: "connectors", lazy: async () => ({ Component: (await import("../pages/ConnectorsPage")).ConnectorsPage }) },
  { path: "sources", lazy: async () => ({ Component: (await import("../pages/SourcesPage")).SourcesPage }) },
  { path: "timers", lazy: async () => ({ Component: (await import("../pages/TimersPage")).TimersPage }) },
  { path: "channels", lazy: async () => ({ Component: (await import("../pages/ChannelsPage")).ChannelsPage }) },
  { path: "clients", lazy: async () => ({ Component: (await import("../pages/ClientsPage")).ClientsPage }) },
  { path: "limits", lazy: async () => ({ Component: (await import("../pages/LimitsPage")).LimitsPage }) },
  { path: "storage", lazy: async () => ({ Component: (await import("../pages/StoragePage")).StoragePage }) },
  { path: "members", lazy: async () => ({ Component: (await import("../pages/MembersPage")).MembersPage }) },
  { path: "traces", lazy: async () => ({ Component: (await import("../pages/TracesPage")).TracesPage }) },
  { path: "jobs", lazy: async () => ({ Component: (await import("../pages/JobsPage")).JobsPage }) },
  { path: "jobs/:job", lazy: async () => ({ Component: (await import("../pages/JobPage")).JobPage }) },
  { path: "jobs/:job/:run", lazy: async () => ({ Component: (await import("../pages/RunPage")).RunPage }) },
  { path: "audit-trail", lazy: async () => ({ Component: (await import("../pages/AuditTrailPage")).AuditTrailPage }) },
  { path: "operators", lazy: async () => ({ Component: (await import("../pages/OperatorsPage")).OperatorsPage }) },
  { path: "filters", lazy: async () => ({ Component: (await import("../pages/FilterPage")).FilterPage }) },
  { path: "sessions", lazy: async () => ({ Component: (await import("../pages/SessionsPage")).SessionsPage }) },
  { path: "patterns", lazy: async () => ({ Component: (await import("../pages/PatternsPage")).PatternsPage }) },
  { path: "groups", lazy: async () => ({ Component: (await import("../pages/GroupsPage")).GroupsPage }) },
  {
    path: "registrations",
    lazy: async () => ({ Component: (await import("../pages/RegistrationsPage")).RegistrationsPage }),
  },
  { path: "endpoints", lazy: async () => ({ Component: (await import("../pages/EndpointsPage")).EndpointsPage }) },
  { path: "endpoints/:endpoint/:tab?", lazy: async () => ({ Component: (await import("../pages/EndpointPage")).EndpointPage }) },
  {
    path: "deliveries",
    lazy: async () => ({ Component: (await import("../pages/DeliveriesPage")).DeliveriesPage }),
  },
  {
    path: "dead-letters",
    lazy: async () => ({ Component: (await import("../pages/DeadLettersPage")).DeadLettersPage }),
  },
  { path: "replays", lazy: async () => ({ Component: (await import("../pages/ReplaysPage")).ReplaysPage }) },
  { path: "replays/new", lazy: async () => ({ Component: (await import("../pages/NewReplayPage")).NewReplayPage }) },
  { path: "replays/:replay", lazy: async () => ({ Component: (await import("../pages/ReplayPage")).ReplayPage }) },
];

const router = createBrowserRouter(
  [
    { path: "/", Component: Home },
    {
      path: "/zones/:zone",
      Component: Gate,
      HydrateFallback: () => null,
      ErrorBoundary: Missing,
      children: [{ index: true, Component: Home }, ...pages, { path: "*", Component: Missing }],
    },
    { path: "*", Component: Missing },
  ],
  { basename: "/console" },
);

function Home() {
  return <Navigate to={pathIn(lastZone(), "overview")} replace />;
}

export function Router() {
  return <RouterProvider router={router} />;
}
