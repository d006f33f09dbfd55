import {
  IconActivity,
  IconBroadcast,
  IconListSearch,
  IconSend,
  IconWebhook,
  type TablerIcon,
} from "@tabler/icons-react";

export interface Page {
  path: string;
  label: string;
  icon: TablerIcon;
  key: string; // after `g`
}

export const PAGES: readonly Page[] = [
  { path: "overview", label: "Overview", icon: IconActivity, key: "o" },
  { path: "live", label: "Live events", icon: IconBroadcast, key: "l" },
  { path: "registrations", label: "Registrations", icon: IconListSearch, key: "r" },
  { path: "endpoints", label: "Endpoints", icon: IconWebhook, key: "e" },
  { path: "deliveries", label: "Deliveries", icon: IconSend, key: "d" },
];
