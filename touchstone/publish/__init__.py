"""From tables to what people read: summary CSV, SQL, data dictionary."""
