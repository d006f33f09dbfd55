import { createBrowserRouter, Navigate } from "react-router";
import { RouterProvider } from "react-router/dom";

import { pathIn } from "../api/zone";
import { Gate } from "./Gate";
import { Missing } from "./Missing";
import { lastZone } from "./lastZone";

// One file per page, so that the first one is small.
const pages = [
  { path: "overview", lazy: async () => ({ Component: (await import("../overview/OverviewPage")).OverviewPage }) },
  { path: "live", lazy: async () => ({ Component: (await import("../live/LivePage")).LivePage }) },
  { path: "streams", lazy: async () => ({ Component: (await import("../streams/StreamsPage")).StreamsPage }) },
  { path: "streams/:stream/:tab?", lazy: async () => ({ Component: (await import("../streams/StreamPage")).StreamPage }) },
  { path: "types", lazy: async () => ({ Component: (await import("../types/TypesPage")).TypesPage }) },
  { path: "types/:domain/:type/:version?", lazy: async () => ({ Component: (await import("../types/TypePage")).TypePage }) },
  { path: "channels", lazy: async () => ({ Component: (await import("../channels/ChannelsPage")).ChannelsPage }) },
  { path: "clients", lazy: async () => ({ Component: (await import("../clients/ClientsPage")).ClientsPage }) },
  { path: "storage", lazy: async () => ({ Component: (await import("../storage/StoragePage")).StoragePage }) },
  { path: "jobs", lazy: async () => ({ Component: (await import("../jobs/JobsPage")).JobsPage }) },
  { path: "jobs/:job", lazy: async () => ({ Component: (await import("../jobs/JobPage")).JobPage }) },
  { path: "jobs/:job/:run", lazy: async () => ({ Component: (await import("../jobs/RunPage")).RunPage }) },
  { path: "filters", lazy: async () => ({ Component: (await import("../filters/FilterPage")).FilterPage }) },
  { path: "groups", lazy: async () => ({ Component: (await import("../groups/GroupsPage")).GroupsPage }) },
  {
    path: "registrations",
    lazy: async () => ({ Component: (await import("../registrations/RegistrationsPage")).RegistrationsPage }),
  },
  { path: "endpoints", lazy: async () => ({ Component: (await import("../endpoints/EndpointsPage")).EndpointsPage }) },
  {
    path: "deliveries",
    lazy: async () => ({ Component: (await import("../deliveries/DeliveriesPage")).DeliveriesPage }),
  },
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
