import {
  IconActivity,
  IconAlarm,
  IconApps,
  IconBraces,
  IconBroadcast,
  IconClockPlay,
  IconDatabase,
  IconFilter,
  IconFolders,
  IconGauge,
  IconKey,
  IconListSearch,
  IconMailOff,
  IconRepeat,
  IconSend,
  IconStack2,
  IconTags,
  IconWebhook,
  type TablerIcon,
} from "@tabler/icons-react";

export interface Page {
  path: string;
  label: string;
  icon: TablerIcon;
  key: string; // after `g`
}

/** The console's pages, in groups. */
export const GROUPS: readonly { label: string; pages: readonly Page[] }[] = [
  {
    label: "Events",
    pages: [
      { path: "overview", label: "Overview", icon: IconActivity, key: "o" },
      { path: "live", label: "Live events", icon: IconBroadcast, key: "l" },
      { path: "streams", label: "Streams", icon: IconStack2, key: "s" },
      { path: "types", label: "Types", icon: IconBraces, key: "t" },
      { path: "applications", label: "Applications", icon: IconApps, key: "a" },
      { path: "timers", label: "Timers", icon: IconAlarm, key: "i" },
      { path: "channels", label: "Channels", icon: IconTags, key: "h" },
    ],
  },
  {
    label: "Interest",
    pages: [
      { path: "filters", label: "Filters", icon: IconFilter, key: "f" },
      { path: "registrations", label: "Registrations", icon: IconListSearch, key: "r" },
      { path: "groups", label: "Groups", icon: IconFolders, key: "p" },
    ],
  },
  {
    label: "Callbacks",
    pages: [
      { path: "endpoints", label: "Endpoints", icon: IconWebhook, key: "e" },
      { path: "deliveries", label: "Deliveries", icon: IconSend, key: "d" },
      { path: "dead-letters", label: "Dead letters", icon: IconMailOff, key: "x" },
      { path: "replays", label: "Replays", icon: IconRepeat, key: "y" },
    ],
  },
  {
    label: "Hub",
    pages: [
      { path: "clients", label: "Clients", icon: IconKey, key: "c" },
      { path: "limits", label: "Limits", icon: IconGauge, key: "m" },
      { path: "storage", label: "Storage", icon: IconDatabase, key: "q" },
      { path: "jobs", label: "Jobs", icon: IconClockPlay, key: "j" },
    ],
  },
];

export const PAGES: readonly Page[] = GROUPS.flatMap((group) => group.pages);
